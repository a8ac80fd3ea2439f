"""What the discrete and the continuous first-moment law share: their one parameter, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from jaxtyping import Float64

from catenary.architecture import Architecture
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import PATH_WEIGHT
from catenary.theory.cesaro.scaled import Scaled, expanded_product
from catenary.theory.theories import check_options
from catenary.validity import ValidityCard

Mixing = float | Sequence[float] | npt.NDArray[np.float64]
"""The attention branch's share alpha of a layer's output: one number, or one per layer, as ``layer_mixing`` checks."""


SMALLEST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
"""Below this (1e-292) a sum of float64 products may have lost terms to underflow."""


def checked_length(length: int) -> int:
    """``length`` if it is a whole number >= 2; raises ``InvalidInput`` otherwise."""
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 2:
        raise invalid("length", "must be a whole number >= 2", length)
    return int(length)


def checked_positive(name: str, value: int) -> int:
    """``value`` if it is a whole number >= 1; raises ``InvalidInput`` otherwise."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise invalid(name, "must be a whole number >= 1", value)
    return int(value)


def checked_position(name: str, position: int, count: int) -> int:
    """``position`` if it is a whole number in 0..count-1; raises ``InvalidInput`` otherwise."""
    if not isinstance(position, int | np.integer) or isinstance(position, bool) or not 0 <= position < count:
        raise invalid(name, f"must be in 0..{count - 1} (0-based)", position)
    return int(position)


def layer_mixing(layers: int, mixing: Mixing) -> Float64[np.ndarray, " {layers}"]:
    r"""One mixing \(\alpha_l \in [0, 1]\) per layer, checked.

    A layer with mixing 0 is the identity and is allowed; 0 in every layer is not, because then no position but the
    last has any influence and the profile is no curve.

    Raises:
        InvalidInput: ``layers`` is not a whole number >= 1, ``mixing`` has the wrong shape, is NaN, lies outside
            [0, 1], or is 0 everywhere.
    """
    checked_positive("layers", layers)
    try:
        values = np.array(mixing, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("mixing", "must be a number or one number per layer", mixing) from None
    if values.ndim > 1 or (values.ndim == 1 and values.size != layers):
        raise invalid("mixing", f"must be a number or {layers} numbers, one per layer", mixing)
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        raise invalid("mixing", "must be in [0, 1]", float(values[bad][0]))
    if not values.any():
        raise invalid(
            "mixing", "must be > 0 in at least one layer", 0.0, "with 0 everywhere only the last token has influence"
        )
    return np.array(np.broadcast_to(values, (layers,)))


def path_counts(layers: int, mixing: Mixing) -> Float64[np.ndarray, " {layers}+1"]:
    r"""Weight \(c_r\) of the paths that pass through exactly r attention branches, r = 0..H.

    \(\prod_l (1-\alpha_l+\alpha_l z) = \sum_r c_r z^r\): a Poisson binomial, a binomial where the mixing is constant.
    O(H^2), relative error of order H times 1e-16. Source: arXiv 2603.10123, section 3.1, for constant mixing; derived
    here for one mixing per layer.
    """
    return scaled_path_counts(layers, mixing).values()


def scaled_path_counts(layers: int, mixing: Mixing) -> Scaled:
    """``path_counts`` without its loss of weights below 1e-308."""
    mixings = layer_mixing(layers, mixing)
    return expanded_product(tuple((1 - mixings).tolist()), tuple(mixings.tolist()))


def mixing_option(theory: str, options: Mapping[str, Any]) -> Mixing:
    """The ``mixing`` among a theory's options, which must hold it and nothing else."""
    check_options(theory, options, ("mixing",))
    if options.get("mixing") is None:
        raise invalid(
            "mixing", f"must be given for theory {theory!r}", None, "pass mixing=0.1, or fit it with fit_cesaro"
        )
    mixing: Mixing = options["mixing"]
    return mixing


def mixing_words(mixing: Mixing) -> str:
    """The mixing as a legend shows it."""
    values = np.atleast_1d(np.asarray(mixing, dtype=np.float64))
    if values.min() == values.max():
        return f"mixing {values[0]:.4g}"
    return f"mixing {values.min():.3g} to {values.max():.3g}"


@final
@dataclass(eq=False)
class FirstMomentTheory:
    """A first-moment law as a theory. It needs ``mixing``: no formula for it from a config is known to fit.

    Attributes:
        name, summary: as ``Theory`` has them.
        law: what a legend calls it.
        row: the values at every position, from length, layers and mixing.
        statements: what its card says beyond what every first-moment law's card says.
    """

    name: str
    summary: str
    law: str
    row: Callable[[int, int, Mixing], Float64[np.ndarray, " L"]]
    statements: tuple[str, ...] = ()

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        """The row at the architecture's depth; ``options`` holds ``mixing``, one number or one per layer.

        The law does not know the tokens: ``tokens`` is not used.

        Raises:
            InvalidInput: ``mixing`` is missing or out of range, ``length`` < 2, or an option is unknown.
            NotApplicable: a value is below 1e-292 (mixing close to 1 and many layers).
        """
        mixing = mixing_option(self.name, options)
        return Profile(
            self.row(length, architecture.depth, mixing),
            PATH_WEIGHT,
            f"{self.law}, {mixing_words(mixing)}",
            "expectation",
            card=first_moment_card(architecture, length, *self.statements),
            provenance={
                "theory": self.name,
                "architecture": architecture.name,
                "layers": architecture.depth,
                "length": length,
                "mixing": np.asarray(mixing, dtype=np.float64).tolist(),
            },
        )


def first_moment_card(architecture: Architecture, length: int, *statements: str) -> ValidityCard:
    """The card of a first-moment law: what it leaves out, and what that costs where it was measured."""
    return ValidityCard(
        logit_variance=architecture.logit_variance if architecture.attends else None,
        width=architecture.width,
        length_over_width=length / architecture.width,
        expected_median_error=None,
        token_spread=None,
        statements=(
            "Path weights of a scalar model: one gain for every position, no feed-forward, no attention-score path. "
            "The weights sum to 1; their scale is not that of ||J_j||_F.",
            "The mixing is a parameter, not read from the config. With the best one for Qwen2-0.5B at birth the last "
            "token is 0.6 to 0.8 dex too high (measured, L = 512 and 2048).",
            *statements,
        ),
        assumed=architecture.assumed,
        not_expressed=architecture.not_expressed,
    )
