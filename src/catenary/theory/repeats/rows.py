r"""Mean attention and its spread, token by token, in rows where tokens repeat.

Copies of a token share a logit as far as their keys are alike. What a token gets from a query is then a function of
the row and of the token's effective multiplicity c there; everything in this file is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from catenary.theory.attention.scores import Scores, query_norms
from catenary.theory.attention.strong import row_moments
from catenary.theory.repeats.band import EachRow, Seen
from catenary.theory.repeats.caps import Cap
from catenary.theory.repeats.likeness import Meeting, Multiplicities, SeenBy, fullest
from catenary.theory.repeats.moments import Placement, RowMomentTable

ROW_STEP = 0.14
"""Step in ln i between rows at which moments are tabulated; logarithms are linear between them (errors < 2e-4)."""


@dataclass(frozen=True, eq=False)
class Levels:
    r"""What tokens get from queries: with \(\alpha, \beta, \kappa\) of ``RowMoments`` and the mean attention a,

    ``share`` is \(a_T = ca\), ``response`` \(\lambda' = \lambda/(1-a_T)\) with \(\lambda = 1 - EA_T^2/EA_T\),
    ``participation`` \(\lambda^2 + \sum_Ta_T^2 - a_T^2\), ``spread`` \(\beta/\alpha^2 - 1\), ``own`` the same at the
    multiplicity of second moments, ``score`` \(\kappa/[\alpha^2(1 - 2a_T + \sum_Ta_T^2)]\): \(\lambda\) and
    \(\kappa\) already leave the token's own type out, and so will the centring of the values. A row of one token has
    no spread.
    """

    share: Seen
    response: Seen
    participation: Seen
    spread: Seen
    own: Seen
    score: Seen


@dataclass(frozen=True, eq=False)
class RowTables:
    r"""ln alpha, ln beta and ln kappa per row on the grid of multiplicities, averaged over the norm of the query.

    ``alone`` is the response of a row of one token; ``copies`` is the exponent y of a tilt by one shared logit at the
    last of the longest rows, \(e^y = n^2m_2\) without copies.
    """

    logs: Float64[np.ndarray, "3 n bins"]
    copies: float
    cap: Cap
    alone: float
    seen: SeenBy

    @property
    def variance(self) -> float:
        """Variance of the logits, beneath their cap."""
        return self.cap.variance

    @classmethod
    def build(cls, variance: float, scores: Scores, near: Meeting) -> RowTables:
        """The tables of rows whose keys are alike as in ``near``, at logit variance v before a cap."""
        seen, cap = near.seen, Cap.of(variance, scores.softcap)
        norms, variance = query_norms(scores.query_dims), cap.variance
        # Rounded up, so that layers whose variances differ by their epsilon share a table.
        largest = 2 ** (math.ceil(4 * math.log2(variance * float(norms.at.max()))) / 4)
        table = _table(math.ceil(seen.counts.max()), largest)

        def moments(multiplicities: Seen, u: float, tokens: EachRow | None) -> Float64[np.ndarray, "3 bins"]:
            total = np.zeros((3, table.bins))
            for factor, weight in zip(norms.at, norms.weights, strict=True):
                found = table(multiplicities, float(factor) * u, tokens)
                total += weight * np.stack([found.mean, found.second, factor * found.key])
            return total

        u = variance * (1 - near.background)
        last = fullest(seen)
        copies = math.log(moments(np.ones(1), float(u[last]), np.full(1, float(seen.counts[last])))[1, 0])
        first = near.multiplicities(copies).first
        rows = seen.chosen(ROW_STEP, 8)
        logs = np.log(np.stack([moments(seen.row(first, i), float(u[i]), seen.tokens(i)) for i in rows], axis=1))
        place = seen.progress[rows]
        left = np.clip(np.searchsorted(rows, np.arange(seen.length), side="right") - 1, 0, max(rows.size - 2, 0))
        right = np.minimum(left + 1, rows.size - 1)
        part = ((seen.progress - place[left]) / np.maximum(place[right] - place[left], 1e-300))[:, None]
        return cls((1 - part) * logs[:, left] + part * logs[:, right], copies, cap, _alone(scores), seen)

    def mean(self, multiplicities: Multiplicities) -> Seen:
        """Mean attention a, rows summing to 1."""
        (alpha,) = self._at(multiplicities.first, 0)
        return np.asarray(alpha / self.seen.each(self.seen.total(alpha)))

    def levels(self, mean: Seen, multiplicities: Multiplicities) -> Levels:
        """The levels of every token in every row."""
        dtype = mean.dtype.type
        c = multiplicities.first.astype(dtype)
        alpha, beta, kappa = self._at(c, 0, 1, 2)
        (beta_own,) = self._at(multiplicities.second.astype(dtype), 1)
        response = np.clip(1 - c * beta / (self.seen.each(self.seen.counts, dtype) * alpha), 1e-3, 1)
        alpha *= alpha
        spread = np.maximum(beta / alpha - 1, 1e-9)
        own = np.maximum(beta_own / alpha - 1, spread)
        score = np.maximum(kappa / alpha, 1e-9)
        alone = self.seen.each(self.seen.counts) <= 1
        spread[alone], own[alone] = 1e-9, 1e-9
        whole = c * mean
        share = np.clip(whole, 0, 0.9)
        together = self.seen.each(self.seen.total(mean * share), dtype)
        score /= np.maximum(1 - 2 * share + together, 0.05)
        participation = response**2 + np.maximum(together - share**2, 0)
        response = np.minimum(response / (1 - share), 1.5) * dtype(self.cap.slope)
        score *= dtype(self.cap.square)
        response[alone], score[alone] = self.alone, self.alone**2
        return Levels(whole, response, participation, spread, own, score)

    def _at(self, multiplicity: Seen, *which: int) -> list[Seen]:
        """The moments ``which`` of every token in every row."""
        bins = self.logs.shape[2]
        place = Placement.of(multiplicity, bins)
        index = place.first + self.seen.rows * bins
        out = []
        for k in which:
            log = self.logs[k].ravel().astype(multiplicity.dtype)
            total = log[index] * place.weights[0]
            for q in (1, 2, 3):
                total += log[index + q] * place.weights[q]
            out.append(np.exp(total, out=total))
        return out


def _alone(scores: Scores) -> float:
    r"""Response of a row of one token beside a sink, \(\sqrt{E[p'^2]}/(p(1-p))\) with p its mean; else it has none."""
    if scores.sink is None:
        return 1.0
    row = row_moments(scores, np.ones(1), np.array([scores.variance]))
    p, slope = float(row.mean[0, 0]), float(row.whole[0, 0])
    return math.sqrt(slope) / (p * (1 - p))


@lru_cache(maxsize=8)
def _table(longest: int, variance: float) -> RowMomentTable:
    return RowMomentTable.build(longest, variance)
