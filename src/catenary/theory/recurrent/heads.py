r"""Heads of a recurrence by what they remember: a few decays that stand for all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catenary.architecture import GatedRecurrence, LinearAttention, SelectiveStateSpace, StateSpace, Steps
from catenary.errors import NotApplicable
from catenary.theory.positions.portions import gauss_rule
from catenary.theory.recurrent.steps import Decay, fixed_decay, step_decay

MOST = 8
"""Slopes that stand for all heads of a layer of linear attention: six move the norm by 2e-4, four by 3e-3."""

PER_SPREAD = 1.3
"""Rates that stand for a group's, per unit of ln(largest/smallest). With more, norms move by less than .001 dex, also
where the states outweigh what passes them by 50 times; with one for 8 rates from 1 on they moved by .013."""

RANGE_NODES = 3
"""Of a log-uniform range of step sizes."""


@dataclass(frozen=True)
class Share:
    """A share of a group's heads, in (0, 1], and their decay."""

    share: float
    decay: Decay


def linear_shares(word: LinearAttention) -> tuple[Share, ...]:
    """The decays of linear attention's heads."""
    return tuple(Share(share, fixed_decay(slope)) for slope, share in _few(word.slopes, MOST))


def state_space_shares(word: StateSpace, width: int) -> tuple[tuple[Share, ...], ...]:
    """The decays of each group of heads, in order.

    Raises:
        NotApplicable: heads that no equal groups hold.
    """
    if word.heads % word.groups:
        raise NotApplicable(f"{word.heads} heads are not {word.groups} equal groups")
    deviation = math.sqrt(width) * word.input_std * word.input_scales[3]
    per = word.heads // word.groups
    least, most = word.steps.limits or (0.0, math.inf)
    biases = _biases(word.steps)
    return tuple(
        tuple(
            Share(share * weight, step_decay(rate, bias, deviation, least, most))
            for rate, share in _few(rates, max(1, round(PER_SPREAD * math.log(rates[-1] / rates[0]))))
            for bias, weight in biases
        )
        for rates in (range(group * per + 1, (group + 1) * per + 1) for group in range(word.groups))
    )


def selective_shares(word: SelectiveStateSpace, energy: float) -> tuple[Share, ...]:
    """The decays of a state's entries in all channels; ``energy`` is that of the values they are linear in."""
    known = 1.0 if word.norm else word.width * word.project_std**2 * energy
    deviation = math.sqrt(word.rank * word.step_std**2 * known)
    rates = _few(range(1, word.state + 1), max(1, round(PER_SPREAD * math.log(word.state))))
    return tuple(
        Share(share * weight, step_decay(rate, bias, deviation))
        for rate, share in rates
        for bias, weight in _biases(word.steps, SELECTIVE_NODES)
    )


SELECTIVE_NODES = 6
"""Of a log-uniform range of steps where nothing but states carries far."""

RADIUS_NODES = 12
"""Of a channel's decay: with 32 the norm moves by 1e-5 dex or less up to 1,000 tokens, with 8 it moved by .001."""

EXPONENT = 8.0
r"""c of Griffin: a channel of radius \(\lambda\) keeps \(\lambda^{cr}\), r its gate."""


def radius_shares(word: GatedRecurrence) -> tuple[Share, ...]:
    r"""The decays of channels whose gates are half open: \(a = \lambda^4 = v^2\), v uniform; even in ln(-ln v)."""
    low, high = (radius**2 for radius in word.radii)
    ends = math.log(-math.log(high)), math.log(-math.log(low))
    nodes, weights = np.polynomial.legendre.leggauss(RADIUS_NODES)
    slopes = np.exp((ends[0] + ends[1]) / 2 + nodes * (ends[1] - ends[0]) / 2)
    density = weights * slopes * np.exp(-slopes)
    shares = density / density.sum()
    return tuple(
        Share(float(share), fixed_decay(EXPONENT / 4 * float(slope)))
        for share, slope in zip(shares, slopes, strict=True)
    )


def _biases(steps: Steps, count: int = RANGE_NODES) -> list[tuple[float, float]]:
    """The biases of the steps and their weights: Gauss-Legendre in the logarithm of a range of step sizes."""
    if steps.range is None:
        return [(steps.bias, 1.0)]
    low, high = map(math.log, steps.range)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    sizes = np.exp((low + high) / 2 + nodes * (high - low) / 2)
    return [(float(np.log(np.expm1(size))), float(weight) / 2) for size, weight in zip(sizes, weights, strict=True)]


def _few(rates: Sequence[float], most: int) -> list[tuple[float, float]]:
    """At most ``most`` rates and their shares: the Gauss rule of ln rate."""
    values, counts = np.unique(np.asarray(rates, dtype=np.float64), return_counts=True)
    shares = counts / counts.sum()
    if values.size <= most:
        return list(zip(values.tolist(), shares.tolist(), strict=True))
    rule = gauss_rule(np.log(values), shares, most)
    return list(zip(np.exp(rule.nodes).tolist(), rule.weights.tolist(), strict=True))
