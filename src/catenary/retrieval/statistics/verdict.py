"""The verdict on a curve by slot: U, primacy, recency, flat, ceiling, floor, irregular, or none for want of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from catenary.retrieval.statistics.resolve import Z_POWER, Z_TWO_SIDED
from catenary.retrieval.statistics.simultaneous import Gaps
from catenary.verdict import _explained

Shape = Literal["U", "primacy", "recency", "flat", "ceiling", "floor", "irregular", "no verdict"]

FEWEST = 8
"""Complete samples below which no shape is named: seven have 64 sign patterns, too few for a 5 % tail of many gaps."""
FEWEST_AT_AN_END = 20
"""Complete samples below which neither ceiling nor floor is named: one miss in 20 is their bound of 5 %."""
CEILING = 0.95
"""Share right above which a flat curve says nothing about position: too few misses are left to lie anywhere."""
SHALLOW = 0.05
"""A U whose higher end stands less than this above its minimum is called shallow."""
SMALLEST = 0.1
"""Difference that must have been visible before a curve is called flat, unless told otherwise."""
EXPLAINED = 0.7
"""Share of the variance of the means that a named shape explains, unless a contradiction is unresolved."""


@dataclass(frozen=True)
class SlotVerdict:
    """One word, the words for print, and one line of evidence per number that decided."""

    shape: Shape
    words: str
    evidence: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"shape": self.shape, "words": self.words, "evidence": list(self.evidence)}


def refused(reason: str) -> SlotVerdict:
    """No verdict, for this reason."""
    return SlotVerdict("no verdict", f"no verdict: {reason}", ())


def judge_slots(
    gaps: Gaps,
    slots: tuple[int, ...],
    of: int,
    n: int,
    *,
    binary: bool,
    smallest: float = SMALLEST,
    closed_book: tuple[float, float, float] | None = None,
) -> SlotVerdict:
    r"""Name the shape of a curve by slot.

    An end is *raised* when its mean is above the lowest slot's, or above the mean of the middle slots, by more than
    the critical value ``gaps.ends`` of standard errors. That value is the 95 % quantile of the largest such t among
    both ends and every slot when no slot differs, so picking the lowest slot by looking is paid for.

    - U: both ends raised; primacy or recency: the first or the last alone;
    - irregular: an inner slot above both ends, or a named shape that explains less than 70 % of the variance of the
      means while a pair of slots contradicts it, or no end raised while some pair differs; pairs count beyond
      ``gaps.pairs``;
    - otherwise nothing is resolved: ceiling (mean of at least .95, or its logarithm), floor (at most .05, or not
      above closed book), flat where a difference of ``smallest`` would have been seen with 80 % power, else no
      verdict.

    Args:
        gaps: differences between slots, of rows or of means alone.
        slots, of: the slots measured and how many the prompt has.
        n: samples at each slot.
        binary: whether outcomes are 0 or 1; otherwise they are log-probabilities in nats.
        smallest: the difference that ``flat`` excludes, in the metric's unit.
        closed_book: mean over samples of (mean over slots less closed book) with its 95 % interval, where known.
    """
    if len(slots) < 3:
        return refused(f"{len(slots)} slots were measured; an end, a middle and an end are needed")
    if n < FEWEST:
        return refused(f"{n} samples; at least {FEWEST} that were scored at every slot are needed")
    m, end = gaps.means, len(slots) - 1
    low, high = int(m.argmin()), int(m.argmax())
    over_low = (gaps.t(0, low), gaps.t(end, low))
    over_mid = (gaps.over_middle(0), gaps.over_middle(1))
    first, last = (bool(max(over_low[e], over_mid[e]) > gaps.ends) for e in (0, 1))
    hump = 0 < high < end and min(gaps.t(high, 0), gaps.t(high, end)) > gaps.pairs

    evidence = [
        _end("first", gaps, 0, low, slots, over_low[0], over_mid[0], first),
        _end("last", gaps, end, low, slots, over_low[1], over_mid[1], last),
        f"an end counts beyond {gaps.ends:.2f} standard errors, which 5 % of flat curves reach at any slot",
    ]
    if not gaps.paired:
        evidence.append("errors from n and the means alone: whether slots were asked the same questions is unknown")
    if hump:
        evidence.append(f"slot {slots[high]} stands above both ends by more than {gaps.pairs:.2f} standard errors")
        return SlotVerdict("irregular", f"irregular: highest at {_place(high, slots, of)}", tuple(evidence))
    if not (first or last):
        return _unresolved(gaps, slots, of, n, low, high, binary, smallest, closed_book, evidence)

    shape: Shape = "U" if first and last else "primacy" if first else "recency"
    turn = {"U": low, "primacy": end + 1, "recency": 0}[shape]
    explained = _explained(m, turn)
    against = [
        (i, k) for i in range(end + 1) for k in range(i + 1, end + 1)
        if (k <= turn and gaps.t(k, i) > gaps.pairs) or (i >= turn and gaps.t(i, k) > gaps.pairs)
    ]  # fmt: skip
    if against and explained < EXPLAINED:
        i, k = max(against, key=lambda pair: abs(gaps.t(*pair)))
        evidence.append(
            f"a {shape} explains {explained:.0%} of the variance of the means, and slots {slots[i]} and {slots[k]} "
            "contradict it"
        )
        words = f"irregular: neither U, primacy nor recency fits {len(slots)} slots"
        return SlotVerdict("irregular", words, tuple(evidence))
    if m.min() >= (CEILING if binary else math.log(CEILING)):
        evidence.append("near the ceiling: every slot is above .95" + ("" if binary else " in probability per token"))
    words = _u_words(gaps, slots, of, low) if shape == "U" else _one_sided_words(gaps, shape, low)
    return SlotVerdict(shape, words, tuple(evidence))


def _unresolved(
    gaps: Gaps, slots: tuple[int, ...], of: int, n: int, low: int, high: int, binary: bool, smallest: float,
    closed_book: tuple[float, float, float] | None, evidence: list[str],
) -> SlotVerdict:  # fmt: skip
    """What to say where no end is raised and no hump is."""
    if gaps.t(high, low) > gaps.pairs:
        evidence.append(
            f"slots {slots[high]} and {slots[low]} differ by {gaps.means[high] - gaps.means[low]:.3f}, more than "
            f"{gaps.pairs:.2f} standard errors, and neither end does from the lowest"
        )
        return SlotVerdict("irregular", f"irregular: lowest at {_place(low, slots, of)}", tuple(evidence))
    mean = float(gaps.means.mean())
    seen = (gaps.ends + Z_POWER) * gaps.typical_error
    if n >= FEWEST_AT_AN_END:
        if mean >= (CEILING if binary else math.log(CEILING)):
            evidence.append(f"mean over slots {mean:.3f}")
            return SlotVerdict("ceiling", "ceiling: too few failures to tell positions apart", tuple(evidence))
        if binary and mean <= 1 - CEILING:
            evidence.append(f"mean over slots {mean:.3f}")
            return SlotVerdict("floor", "floor: too few right answers to tell positions apart", tuple(evidence))
        if closed_book is not None and closed_book[1] <= 0:
            gain, lower, upper = closed_book
            evidence.append(f"with documents less closed book: {gain:+.3f} [{lower:+.3f}, {upper:+.3f}]")
            return SlotVerdict("floor", "floor: the documents do not help beyond closed book", tuple(evidence))
    if seen > smallest:
        needed = math.ceil(n * (seen / smallest) ** 2)
        return SlotVerdict(
            "no verdict",
            f"no verdict: no slot differs beyond chance, but {n} samples would show a difference of {seen:.2g} and not "
            f"of {smallest:g}; about {needed:,} would",
            tuple(evidence),
        )
    evidence.append(f"{n} samples show a difference of {seen:.2g} at an end in four cases of five")
    return SlotVerdict("flat", f"flat: no end differs by {smallest:g} or more", tuple(evidence))


def _end(
    name: str, gaps: Gaps, end: int, low: int, slots: tuple[int, ...], over_low: float, over_mid: float, raised: bool
) -> str:
    mid = float(gaps.means[list(gaps.mid)].mean())
    return (
        f"{name} less lowest (slot {slots[low]}): {gaps.means[end] - gaps.means[low]:+.3f} ({over_low:.1f} s.e.), less "
        f"the middle: {gaps.means[end] - mid:+.3f} ({over_mid:.1f} s.e.): {'raised' if raised else 'not raised'}"
    )


def _u_words(gaps: Gaps, slots: tuple[int, ...], of: int, low: int) -> str:
    """U, with what sets it apart: which end is higher, how shallow, and a minimum that is told from the middle."""
    m = gaps.means
    depth, parts = float(max(m[0], m[-1]) - m[low]), []
    if depth < SHALLOW:
        parts.append(f"shallow ({_short(depth)})")
    if abs(gaps.t(0, len(m) - 1)) > Z_TWO_SIDED:
        parts.append("primacy stronger" if m[0] > m[-1] else "recency stronger")
    if low not in gaps.mid and max(gaps.t(j, low) for j in gaps.mid) > gaps.pairs:
        parts.append(f"minimum at {_place(low, slots, of)}")
    return f"U, {', '.join(parts)}" if parts else "U"


def _one_sided_words(gaps: Gaps, shape: Shape, low: int) -> str:
    """Primacy or recency, with how far the other end stands above the minimum where it does."""
    other, name = (-1, "last") if shape == "primacy" else (0, "first")
    gap = float(gaps.means[other] - gaps.means[low])
    return f"{shape} ({name} slot {gap:+.3f} over the minimum, not resolved)" if gap > 0 else shape


def _place(index: int, slots: tuple[int, ...], of: int) -> str:
    return f"{slots[index] / (of - 1):.0%}"


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def binomial_variance(means: Float64[np.ndarray, " P"], n: int) -> Float64[np.ndarray, " P"]:
    r"""Variance of a share of n, \(\tilde p(1-\tilde p)/n\), \(\tilde p=(pn+1)/(n+2)\), so that 0 and 1 have some."""
    share = (means * n + 1) / (n + 2)
    return np.asarray(share * (1 - share) / n)
