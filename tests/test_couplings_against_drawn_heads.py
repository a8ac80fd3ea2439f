"""The strong coupling against drawn heads, form by form: kernels, sinks, soft-caps, QK-norm, blocks, at infinite width.

Bounds are dex of the mean square over positions, beyond three standard errors of the draws. Measured with 24 networks
of 16 heads, 4 layers, L = 64, v = .85: +.005 (causal), +.004 (windows), -.017 (ALiBi), +.002 (soft-cap), +.004
(sinks, QK-norm, norms around branches); a single ALiBi slope of .1 for all heads gives -.046 and is left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builders import qwen2_like
from catenary.architecture import (
    Alibi,
    Architecture,
    HeadGroup,
    Prefix,
    Sink,
    Window,
    parallel,
    post_branch,
    sandwich,
)
from catenary.protocols import TokenLaw
from catenary.theory.birth import exact_energies
from catenary.theory.embedding import embedded
from catenary.theory.sampled.quantiles import birth_quantiles

HEADS, LENGTH = 16, 24
BLOCKS = {"sandwich": sandwich, "parallel": parallel, "post-branch": post_branch}
CASES: dict[str, tuple[float, dict[str, Any]]] = {
    "causal": (0.01, {}),
    "window": (0.01, {"groups": (HeadGroup(HEADS, Window(16)),)}),
    "half window": (0.01, {"groups": (HeadGroup(HEADS // 2, Window(12)), HeadGroup(HEADS // 2))}),
    "prefix": (0.01, {"groups": (HeadGroup(HEADS, Prefix(8)),)}),
    "alibi": (0.03, {"groups": tuple(HeadGroup(1, Alibi(2 ** (-8 * (k + 1) / HEADS))) for k in range(HEADS))}),
    "softcap": (0.01, {"softcap": 2.0}),
    "sink": (0.01, {"sink": Sink(0.5, 1.0)}),
    "qk-norm": (0.01, {"qk_norm": True}),
    "sandwich": (0.01, {}),
    "parallel": (0.01, {}),
    "post-branch": (0.01, {"qk_norm": True}),
}


def network(case: str) -> Architecture:
    held = qwen2_like(256, 3, HEADS, HEADS, 64, 1390, std=math.sqrt(math.sqrt(0.85) / 256))
    layer = held.layers[0]
    mixed = replace(layer.attention, **CASES[case][1])
    norm = layer.norm
    layer = BLOCKS[case](mixed, layer.feed_forward, norm) if case in BLOCKS else layer.with_mixers(mixed)
    return replace(held, layers=(layer,) * held.depth)


def off(law: np.ndarray, held: Architecture) -> tuple[float, float]:
    """log10 law/drawn of the mean square over positions, and its standard error."""
    # QK-norm takes 400 products per head instead of 15.
    networks = 4 if held.layers[0].attention.qk_norm else 12
    ratio = np.mean(birth_quantiles(held, LENGTH, TokenLaw(), networks=networks).norms ** 2 / law, axis=1)
    error = ratio.std() / math.sqrt(networks) / ratio.mean() / 2 / math.log(10)
    return -0.5 * math.log10(ratio.mean()), error


@pytest.mark.parametrize("case", CASES)
def test_strong_coupling(case: str) -> None:
    held = network(case)
    law = 256 * exact_energies(held, embedded(held, np.eye(LENGTH)), finite_width=False)
    found, error = off(law, held)
    print(f"{case}: {found:+.4f} +- {error:.4f}")
    assert abs(found) < CASES[case][0] + 3 * error
    assert error < 0.01


def test_the_comparison_can_tell() -> None:
    """The law of whole-past attention, beside heads of which half see twelve tokens."""
    plain = network("causal")
    law = 256 * exact_energies(plain, embedded(plain, np.eye(LENGTH)), finite_width=False)
    found, error = off(law, network("half window"))
    assert abs(found) > 0.03 + 3 * error
