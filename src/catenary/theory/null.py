r"""The trivial null: \(1/j\) and a last-token spike. A theory has skill only where it beats this.

Any decreasing curve with a raised last token has the same rank correlation with a measurement, so a theory is judged
by how much smaller its error is than that of the simplest such curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import PATH_WEIGHT
from catenary.theory.theories import THEORIES, check_options
from catenary.validity import ValidityCard


def null_row(length: int, spike: float = 1.0) -> Float64[np.ndarray, " L"]:
    r"""\(1/j\) for j = 1..L-1 (index 0 is the first token), ``spike`` at the last, scaled to sum to 1.

    ``spike`` is the last token over the first; at its default, 1, both ends are equally high. Source: defined here.

    Raises:
        InvalidInput: ``length`` is not a whole number >= 2, or ``spike`` is not a finite number > 0.
    """
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 2:
        raise invalid("length", "must be a whole number >= 2", length)
    if not isinstance(spike, int | float | np.floating) or not 0 < spike < np.inf:
        raise invalid("spike", "must be a finite number > 0 (last token over first)", spike)
    row = 1.0 / np.arange(1.0, length + 1.0)
    row[-1] = spike
    return np.asarray(row / row.sum())


def fit_null(profile: Profile) -> Profile:
    r"""The null that lies closest to ``profile``: \(s/j\) for j < L, and the profile's own last token.

    \(\log_{10} s\) is the mean of \(\log_{10}(\rho_j\, j)\) over j < L: least squares in log10. The last token is
    matched exactly, since a spike of free height costs the null nothing. Positions with influence 0 (out of a
    window's reach) have no logarithm and are left out of the mean; how many took part is in the provenance.
    Source: defined here.

    Raises:
        InvalidInput: the profile is 0 at every position before the last.
    """
    body = profile.values[:-1]
    seen = np.flatnonzero(body > 0)
    if not seen.size:
        raise invalid("profile", "must be > 0 somewhere before the last position", 0.0)
    scale = float(np.exp(np.mean(np.log(body[seen]) + np.log(seen + 1.0))))
    values = scale / np.arange(1.0, len(profile) + 1.0)
    values[-1] = profile.values[-1]
    return Profile(
        values,
        profile.quantity,
        "1/j + last-token spike, fitted",
        "none",
        provenance={
            "theory": "null",
            "fitted": {"scale": scale, "last": float(profile.values[-1])},
            "fitted_by": "least squares in log10 over positions before the last; last token matched",
            "fitted_to": profile.label,
            "positions": int(seen.size),
        },
    )


@final
class Null:
    """1/j and a last-token spike as a theory: no parameter from the architecture enters."""

    name = "null"
    summary = "1/j and a last-token spike; what any other theory has to beat"

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        """``null_row(length, spike)``; the one option is ``spike``, the last token over the first (default 1).

        Neither the architecture nor ``tokens`` enters the values.

        Raises:
            InvalidInput: ``length`` < 2, ``spike`` is not a finite number > 0, or an option is unknown.
        """
        check_options(self.name, options, ("spike",))
        spike = options.get("spike", 1.0)
        return Profile(
            null_row(length, spike),
            PATH_WEIGHT,
            "1/j + last-token spike",
            "expectation",
            card=ValidityCard(
                logit_variance=architecture.logit_variance if architecture.attends else None,
                width=architecture.width,
                length_over_width=length / architecture.width,
                expected_median_error=None,
                token_spread=None,
                statements=("A yardstick, not a theory: the same curve for every network.",),
                assumed=architecture.assumed,
                not_expressed=architecture.not_expressed,
            ),
            provenance={
                "theory": self.name, "architecture": architecture.name, "length": int(length), "spike": float(spike)
            },
        )


NULL = THEORIES.register("null", Null())
