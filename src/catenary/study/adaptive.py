r"""As many windows as a target error needs, for a trained network: measure, look at the interval, measure more.

The number looked at is the widest 95 % interval of a block's log-mean over windows, half of it, as a relative error:
\(\max_k t_{.975,n-1}\,s_k/\sqrt n\) with \(s_k\) the standard deviation over n windows of the mean of \(\ln\|J_j\|\)
over the tokens of block k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, log
from pathlib import Path

import numpy as np

from catenary.blocks import Blocks
from catenary.errors import invalid
from catenary.sample import Sample
from catenary.study.config import StudyConfig, Tokens
from catenary.study.measuring import load_net, measure_part
from catenary.study.observer import Observer
from catenary.study.parts import Part
from catenary.study.source import Source
from catenary.text.windows import Windows

FIRST, GROWTH = 8, 1.5
"""Windows of the first look, and by how much there are more at the next: few looks, and at most half too many windows.

Looking often could make the last interval too narrow. By simulation with 600 draws of normal rows, 3 or 15 blocks and
targets that stop after 10 to 43 windows on average, it covers a block's mean 94.1 to 95.1 times in 100.
"""


@dataclass(frozen=True)
class Adapted:
    """What was measured, the error it came to, and the target."""

    sample: Sample
    part: Part
    error: float
    target: float

    @property
    def reached(self) -> bool:
        """Whether the error is at most the target."""
        return self.error <= self.target

    @property
    def wanted(self) -> int:
        """Windows that would reach the target, if the error falls as one over their root."""
        return ceil(self.part.windows * (self.error / self.target) ** 2)

    @property
    def words(self) -> str:
        """One sentence."""
        kept = "" if self.reached else f", not {self.target:.1%}: give about --windows {self.wanted}"
        return f"{self.part.windows} windows: block log-means are known to {self.error:.1%} (95 %){kept}"


def looks(most: int, batch: int = 1) -> list[int]:
    """Numbers of windows at which the error is looked at, up to ``most``, in whole batches."""
    counts: list[int] = []
    wanted: float = FIRST
    while not counts or counts[-1] < most:
        counts.append(min(most, batch * ceil(wanted / batch)))
        wanted = max(GROWTH * wanted, counts[-1] + 1)
    return counts


def block_error(sample: Sample) -> float:
    """Widest half of a 95 % interval of a block's log-mean over windows, over all blocks and conditions, in ln units.

    Raises:
        InvalidInput: for fewer than two windows.
    """
    if sample.sequences < 2:
        raise invalid("windows", "must be >= 2 for an error over windows", sample.sequences)
    from scipy.special import stdtrit

    norms = np.sqrt(sample.energy[:, 0, 0].mean(axis=2))
    rows = log(10) * Blocks(sample.length).log_means(norms)
    count = sample.sequences
    half = stdtrit(count - 1, 0.975) * rows.std(axis=1, ddof=1) / np.sqrt(count)
    return float(half.max())


def measure_until(
    config: StudyConfig,
    source: Source,
    part: Part,
    windows: Mapping[Tokens, Windows],
    folder: Path,
    watch: Observer,
    *,
    target_error: float,
) -> Adapted:
    """Measure a trained network on more and more of its windows until ``block_error`` is at most the target.

    Which windows there are and when to stop depends on the seed and the numbers alone, and units that are stored
    already are not measured again.

    Raises:
        InvalidInput: for a target outside (0, 1), or fewer than two windows.
    """
    if not 0 < target_error < 1:
        raise invalid("target_error", "must be in (0, 1), a relative error of a block's mean", target_error)
    if part.windows < 2:
        raise invalid("windows", "must be >= 2, the most to measure", part.windows)
    load = cache(lambda net: load_net(config, part, net))  # one network, not one for each look
    for count in looks(part.windows, config.batch_size):
        some = replace(part, windows=count)
        given = {kind: replace(w, ids=w.ids[:count], sources=w.sources[:count]) for kind, w in windows.items()}
        sample = measure_part(config, source, some, given, folder, watch, load=load)
        error = block_error(sample)
        if error <= target_error:
            return Adapted(sample, some, error, target_error)
    return Adapted(sample, some, error, target_error)
