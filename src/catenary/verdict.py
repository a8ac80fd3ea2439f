"""Verdict: the one word for a profile's body and whether its last token is a spike, with the numbers that decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Blocks
from catenary.reading import number
from catenary.statistics import RESAMPLES, Units, floor_between_halves, small_sample_factor

Body = Literal["U", "hump", "primacy", "recency", "flat", "irregular"]

BOUND = 0.05
"""Smallest difference of two blocks (dex, 12 %) that counts: the birth law's own error in its range of trust."""
SPIKE = 2.0
"""The last token is a spike above this many times the block before it."""
EXPLAINED = 0.7
"""A named shape must account for at least this much of the variance of the block log-means."""


@dataclass(frozen=True)
class Verdict:
    """Body shape, spike, the words for both, and the evidence: one line per number that decided."""

    body: Body
    spike: bool
    words: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Spread:
    """What a Sample knows about the error of its K block log-means (dex).

    Attributes:
        error: standard error of the difference of blocks (i, k), shape (K, K).
        ends, pairs: critical values: 95 % of the largest |error| among all differences to an end block, and among
            all pairs, in standard errors. They replace 1.96 because the lowest block is picked by looking.
        floor: noise floor of the block log-means (shape error between halves over sqrt 2).
    """

    error: Float64[np.ndarray, "K K"]
    ends: float
    pairs: float
    floor: float

    @classmethod
    def of(cls, units: Units, blocks: Blocks, resamples: int = RESAMPLES, seed: int = 0) -> Spread:
        r"""Measure the spread by bootstrap over the Sample's outermost unit.

        With deviations \(D^*_k\) of the resampled block log-means from their mean,
        \(c=\) 95 % quantile of \(\max_{(i,k)}|D^*_i-D^*_k|/\text{se}_{ik}\): intervals
        \((b_i-b_k)\pm c\,\text{se}_{ik}\) then hold for all pairs at once, whichever block turns out lowest.
        Standard errors are widened for a small number of units (``small_sample_factor``).
        """
        draws = units.bootstrap(blocks.log_means, resamples, seed)
        draws = draws - draws.mean(axis=0)
        difference = draws[:, :, None] - draws[:, None, :]
        error = np.sqrt((difference**2).mean(axis=0))
        # A few units know an error badly: one that is small by luck would make its pair look certain. None is
        # taken below the typical one.
        pairs = ~np.eye(len(error), dtype=bool)
        error = np.maximum(error, np.median(error[pairs])) * pairs
        ratio = np.abs(np.divide(difference, error, out=np.zeros_like(difference), where=error > 0))
        ends = np.maximum(ratio[:, 0].max(axis=1), ratio[:, -1].max(axis=1))

        def shape_error(a: Float64[np.ndarray, "1 L"], b: Float64[np.ndarray, "1 L"]) -> Float64[np.ndarray, " 1"]:
            gap = (blocks.log_means(a) - blocks.log_means(b))[0]
            return np.array([np.median(np.abs(gap - np.median(gap)))])

        return cls(
            error * small_sample_factor(units.count),
            float(np.quantile(ends, 0.95)),
            float(np.quantile(ratio.max(axis=(1, 2)), 0.95)),
            float(floor_between_halves(units, shape_error)[0]),
        )


def judge(values: Float64[np.ndarray, " L"], spread: Spread | None = None, note: str = "") -> Verdict:
    r"""Name the shape of a profile.

    Let \(b_k\) be the body's block log-means (dex) and bound = max(.05, 2 noise floors). Block i is *raised* over
    block k when \(b_i-b_k\) > bound and its 95 % interval excludes 0. An end is raised when it is raised over the
    lowest block.

    - hump: the highest block is interior and raised over both ends;
    - U: both ends raised, which puts the trough inside; primacy or recency: the first or the last alone;
    - irregular: U and hump at once, or the best curve of the named shape (monotone on each side of its turning
      point) leaves more than half of the variance of the \(b_k\) unexplained;
    - flat: no end raised, no hump, and the highest block not raised over the lowest; otherwise irregular.
    - spike: last token > 2 x the log-mean of the block before it.

    The interval is simultaneous over the choice of the lowest block (``Spread``): measured on flat noisy Samples of
    2 to 24 units, at most 2 % are called U and 5 % any named shape but flat. Up to 5 % are called irregular, and up
    to 30 % where energies of heavy-tailed tokens (0.4 dex) are averaged by root mean square. Without a spread (a
    theory, or a curve whose error is unknown) the floor is 0 and only the bound decides; ``note`` then says which.

    Raises:
        InvalidInput: for fewer than 5 positions.
    """
    blocks = Blocks(len(values))
    b = blocks.log_means(values)
    low, high, end = int(b.argmin()), int(b.argmax()), len(b) - 1
    floor = spread.floor if spread else 0.0
    bound = max(BOUND, 2 * floor)

    def raised(i: int, k: int, any_pair: bool = False) -> bool:
        return bool(b[i] - b[k] > max(bound, _reach(spread, i, k, any_pair)))

    first, last = raised(0, low), raised(end, low)
    hump = 0 < high < end and raised(high, 0) and raised(high, end)
    body: Body = "flat"
    if hump and first and last:
        body = "irregular"
    elif hump:
        body = "hump"
    elif first or last:
        body = "U" if first and last else "primacy" if first else "recency"
    elif raised(high, low, any_pair=True):
        body = "irregular"
    turns = {"U": low, "primacy": len(b), "recency": 0}
    explained = np.nan
    if body == "hump" or body in turns:
        explained = _explained(-b, high) if body == "hump" else _explained(b, turns[body])
        body = body if explained >= EXPLAINED else "irregular"

    ratio = values[-1] / 10 ** b[-1]
    spike = bool(ratio > SPIKE)
    before = blocks.spans[-1]
    known = float(ratio) if values[before.start : before.stop].any() else None
    noisy = body == "flat" and b[high] - b[low] > BOUND
    words = ("flat within the noise" if noisy else body) + (" + last-token spike" if spike else "")

    names, sizes = [span.name for span in blocks.spans], sorted({span.size for span in blocks.spans})
    evidence = [
        f"body of {len(b)} blocks of {' or '.join(map(str, sizes))} tokens; "
        f"lowest {names[low]}, highest {names[high]}",
        _line("first block / lowest block", b, 0, low, spread, first),
        _line("last block / lowest block", b, end, low, spread, last),
        _line("highest block / first block", b, high, 0, spread, raised(high, 0)),
        _line("highest block / last block", b, high, end, spread, raised(high, end)),
        f"bound {bound:.3f} dex = max({BOUND}, 2 x noise floor {floor:.3f})",
        _spike_words(known, spike),
    ]
    if not np.isnan(explained):
        evidence.append(f"the best curve of the named shape explains {explained:.0%} of the blocks' variance")
    if sizes[0] < 16:
        evidence.append("blocks shorter than 16 tokens, because the context is short: single tokens weigh much")
    if noisy:
        unseen = 10 ** max(bound, _reach(spread, high, low, any_pair=True))
        evidence.append(f"highest and lowest block would have to differ by {number(unseen)} x to be told apart")
    return Verdict(body, spike, words, (*evidence, note) if note else tuple(evidence))


def _reach(spread: Spread | None, i: int, k: int, any_pair: bool = False) -> float:
    """Half-width of the simultaneous 95 % interval of b_i - b_k; 0 where no error is known."""
    if spread is None:
        return 0.0
    return (spread.pairs if any_pair else spread.ends) * float(spread.error[i, k])


def _line(
    name: str, b: Float64[np.ndarray, " K"], i: int, k: int, spread: Spread | None, raised: bool
) -> str:
    """One ratio of blocks with its simultaneous interval, and whether it counted as raised."""
    gap = float(b[i] - b[k])
    text = f"{name}: {number(10**gap)}"
    if spread is not None and i != k:
        reach = _reach(spread, i, k)
        text += f" [{number(10 ** (gap - reach))}, {number(10 ** (gap + reach))}]"
    return f"{text} ({gap:+.3f} dex), {'raised' if raised else 'not raised'}"


def _spike_words(ratio: float | None, spike: bool) -> str:
    """The ratio that decides, None where the block is 0."""
    known = "that block is 0" if ratio is None else number(ratio)
    return f"last token / block before it: {known}, {'above' if spike else 'not above'} {SPIKE:g}"


def _explained(b: Float64[np.ndarray, " K"], turn: int) -> float:
    """Share of the variance of b explained by the best curve that falls up to block ``turn`` and rises from it."""
    fit = np.concatenate([_rising(b[:turn][::-1])[::-1], _rising(b[turn:])])
    return float(1 - ((b - fit) ** 2).sum() / ((b - b.mean()) ** 2).sum())


def _rising(y: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Least-squares non-decreasing fit by pooling adjacent violators."""
    pools: list[tuple[float, int]] = []
    for value in y:
        total, size = float(value), 1
        while pools and pools[-1][0] / pools[-1][1] > total / size:
            before, count = pools.pop()
            total, size = total + before, size + count
        pools.append((total, size))
    return np.array([total / size for total, size in pools for _ in range(size)], dtype=np.float64)
