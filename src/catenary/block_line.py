"""The line that a scattering curve is read by: its block log-means, and where the sequences' own blocks lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Blocks, Span
from catenary.profile import Profile
from catenary.sample import Sample

FEWEST = 5
"""Fewer blocks than this are no line to read, and every token is drawn instead: contexts below 82 tokens."""

FOR_A_BAND = 4
"""A band needs at least this many (network, sequence) pairs, as ``Sample.profile`` has it."""

Array = Float64[np.ndarray, "*n k"]

WITHIN: Mapping[str, Callable[[Blocks, Array], Array]] = {
    "rms": lambda blocks, energy: np.asarray(np.sqrt(blocks.means(energy))),
    "log": lambda blocks, energy: np.asarray(10 ** blocks.log_means(np.sqrt(energy))),
    "mean": lambda blocks, energy: blocks.means(np.sqrt(energy)),
}
"""How one sequence's tokens make a block value: by the average that made the curve, so that its band is about it."""


@dataclass(frozen=True, eq=False)
class BlockLine:
    """Block values of one curve.

    Attributes:
        spans: the K blocks, as the verdict has them.
        centres: position fraction x of each block's centre.
        values: log-mean of each block; NaN where a token of the block is exactly 0.
        low, high: 16 % and 84 % quantiles over (network, sequence) pairs of each one's block, or None.
    """

    spans: tuple[Span, ...]
    centres: Float64[np.ndarray, " K"]
    values: Float64[np.ndarray, " K"]
    low: Float64[np.ndarray, " K"] | None
    high: Float64[np.ndarray, " K"] | None

    @property
    def sizes(self) -> str:
        """Tokens in a block, in words: ``32`` or ``31 to 32``."""
        sizes = sorted({span.size for span in self.spans})
        return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def block_line(profile: Profile, sample: Sample | None = None) -> BlockLine | None:
    """The block line of a measured curve, with a band where its sample is given; None where tokens are the line.

    Tokens are the line of a theory, which has no scatter, of a profile that is no average, and of a context too
    short for ``FEWEST`` blocks.
    """
    if profile.average not in WITHIN or len(profile) < FEWEST + 2:
        return None
    blocks = Blocks(len(profile))
    if len(blocks.spans) < FEWEST:
        return None
    holes = blocks.means((profile.values == 0).astype(np.float64)) > 0
    values = np.where(holes, np.nan, 10 ** blocks.log_means(profile.values))
    low = high = None
    if sample is not None:
        energy = sample.energy[0, 0].mean(axis=2).reshape(-1, sample.length)
        if len(energy) >= FOR_A_BAND:
            low, high = np.quantile(WITHIN[profile.average](blocks, energy), [0.16, 0.84], axis=0)
    return BlockLine(blocks.spans, blocks.centres, values, low, high)
