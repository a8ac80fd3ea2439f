"""Quantiles of |J_j| over untrained networks, by drawing their attention heads; the law has the rms only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Attention, Branch, FeedForward
from catenary.blocks import regions
from catenary.errors import NotApplicable, invalid
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import JACOBIAN_NORM
from catenary.reading import align, number
from catenary.theory.birth import MEMORY_LIMIT, birth_energies, check_exact_memory, exact_memory, singles
from catenary.theory.embedding import Start, embedded
from catenary.theory.feed_forward.mixer import FeedForwardMixer
from catenary.theory.mixers import Mixer
from catenary.theory.recurrent.mixer import recurrent_mixer
from catenary.theory.sampled.attention import SampledAttention
from catenary.theory.sampled.heads import HeadLaw

BAND = (0.16, 0.84)
"""The quantiles that a profile's band shows."""


@dataclass(frozen=True, eq=False)
class BirthQuantiles:
    r"""\(\|J_j\|_F\) of drawn networks at one context, and its quantiles over them.

    Attributes:
        norms: one row per network, before the final norm.
        levels: the quantiles asked for, rising.
        seed: of the first draw; network k draws its heads from (seed, k).
        rotary: whether RoPE turned queries and keys.
        products: matrix products of size L that the draws took.
    """

    norms: Float64[np.ndarray, "networks L"]
    levels: tuple[float, ...]
    seed: int
    rotary: bool
    products: int

    @property
    def values(self) -> Float64[np.ndarray, "levels L"]:
        """The quantiles at each position, one row per level."""
        return np.asarray(np.quantile(self.norms, self.levels, axis=0))

    @property
    def rms(self) -> Float64[np.ndarray, " L"]:
        """Root mean square over the networks, which the birth law predicts."""
        return np.asarray(np.sqrt(np.mean(self.norms**2, axis=0)))

    def pooled(self, first: int, last: int) -> Float64[np.ndarray, " levels"]:
        """The quantiles over networks and positions first..last (counted from 1, both included) together."""
        length = self.norms.shape[1]
        if not 1 <= first <= last <= length:
            raise invalid("first, last", f"must be 1 <= first <= last <= {length}", (first, last))
        return np.asarray(np.quantile(self.norms[:, first - 1 : last], self.levels))

    def table(self) -> str:
        """Quantiles and root mean square by region, over networks and the region's positions together, as text."""
        heads = ("positions", *(f"{100 * level:g} %" for level in self.levels), "rms")
        rows = [heads]
        for span in regions(self.norms.shape[1]):
            rms = np.sqrt(np.mean(self.norms[:, span.start : span.stop] ** 2))
            rows.append((span.name, *(number(float(q)) for q in (*self.pooled(span.start + 1, span.stop), rms))))
        return align(rows)

    def to_dict(self) -> dict[str, Any]:
        """The quantiles as plain JSON values."""
        return {
            "levels": list(self.levels),
            "values": self.values.tolist(),
            "rms": self.rms.tolist(),
            "networks": len(self.norms),
            "seed": self.seed,
            "rotary": self.rotary,
        }

    def profile(self) -> Profile:
        """The median network at each position, with the band from 16 % to 84 % of the networks."""
        low, median, high = np.quantile(self.norms, (BAND[0], 0.5, BAND[1]), axis=0)
        return Profile(
            median,
            JACOBIAN_NORM,
            f"median of {len(self.norms)} drawn networks",
            low=low,
            high=high,
            provenance={
                "theory": "sampled heads", "networks": len(self.norms), "seed": self.seed, "rotary": self.rotary
            },
        )


def birth_quantiles(
    architecture: Architecture,
    length: int,
    tokens: TokenLaw,
    *,
    levels: Sequence[float] = (0.1, 0.5, 0.9),
    networks: int = 24,
    seed: int = 0,
    rotary: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BirthQuantiles:
    r"""Quantiles over untrained networks of \(\|J_j\|_F\), \(J_j = \partial h_L/\partial e_j\).

    Each network draws queries and keys of every head in every layer, with the true number of heads, their dimension
    and key/value sharing; values, outputs and feed-forward weights are averaged over (``SampledAttention``). So the
    spread is that of attention, of one network on one sequence. Not in it: the noise of probes, and finite width
    (tokens' overlaps of \(1/\sqrt d\), and values, outputs and feed-forward weights that do not average out), nor
    that of layers that mix positions without attention.

    The quantiles of N networks are themselves uncertain: at N = 24 and a spread of .24 dex a single position's
    median has a standard error of .06 dex, its 10 % and 90 % quantiles of .08.

    Args:
        architecture: from ``read_config``; plain attention (no gate, no latent).
        length: L >= 2. Time and memory grow like L^3 and L^2.
        tokens: ids of one window, or distinct tokens.
        levels: in [0, 1], rising.
        networks: how many to draw.
        seed: of the first draw.
        rotary: whether RoPE turns queries and keys; it takes about 17 times as long at head dimension 64. None: only
            where ids repeat; for distinct tokens it moves single networks but no mean over them beyond .01 dex.
        progress: called after each network with (done, all).

    Raises:
        InvalidInput: an argument out of range, or a prediction that would take more than 16 GiB.
        NotApplicable: a repeat probability (one network sees ids), no attention, or one that cannot be drawn.

    Derived here.
    """
    if networks < 2:
        raise invalid("networks", "must be >= 2", networks)
    if not levels or list(levels) != sorted(levels) or levels[0] < 0 or levels[-1] > 1:
        raise invalid("levels", "must rise within [0, 1]", tuple(levels))
    check_drawable(architecture, length, tokens)
    ids = np.arange(length) if tokens.ids is None else tokens.ids
    if rotary is None:
        rotary = np.unique(ids).size < length
    start = embedded(architecture, np.asarray(ids[:, None] == ids, dtype=np.float64))
    norms = np.empty((networks, length))
    for network in range(networks):
        energies = drawn_energies(architecture, start, (seed, network), rotary)
        norms[network] = np.sqrt(architecture.width * energies)
        if progress is not None:
            progress(network + 1, networks)
    products = networks * products_per_network(architecture, length, rotary)
    return BirthQuantiles(norms, tuple(levels), seed, rotary, products)


def check_drawable(architecture: Architecture, length: int, tokens: TokenLaw) -> None:
    """Raise, as ``birth_quantiles`` would, where these networks cannot be drawn; costs nothing."""
    if tokens.ids is None and tokens.repeat_probability:
        raise NotApplicable("a drawn network sees one window of tokens, not a repeat probability; give ids")
    if not architecture.attends:
        raise NotApplicable("no layer has attention, and heads are all that is drawn: all networks would be one")
    longest = math.isqrt(MEMORY_LIMIT // exact_memory(1, architecture.depth))
    check_exact_memory(length, architecture.depth, instead=f"draw networks at length={longest} or shorter")
    products_per_network(architecture, length, tokens.ids is not None)


def drawn_energies(
    architecture: Architecture, start: Start, seed: tuple[int, ...], rotary: bool = True
) -> Float64[np.ndarray, " L"]:
    r"""\(E\|J_j\|_F^2/d\) of one network with drawn heads, averaged over its other weights."""
    width, length = architecture.width, start.stream.same.size
    drawn = 0

    def mixer_of(branch: Branch) -> Mixer:
        nonlocal drawn
        if isinstance(branch.mix, FeedForward):
            return FeedForwardMixer(branch.mix, width, branch.before is not None)
        if not isinstance(branch.mix, Attention):
            return recurrent_mixer(branch.mix, width, singles(length))
        drawn += 1
        law = HeadLaw(branch.mix, width, length, rotary)
        return SampledAttention(law, branch.mix.gain(width), (*seed, drawn))

    return birth_energies(architecture, start, mixer_of)


def products_per_network(architecture: Architecture, length: int, rotary: bool) -> int:
    """How many products of two L x L matrices one network takes (2 L^3 operations each): its cost, before it is run."""
    total = 0
    for layer in architecture.layers:
        for attention in layer.attentions:
            total += attention.heads * HeadLaw(attention, architecture.width, length, rotary).products
    return total
