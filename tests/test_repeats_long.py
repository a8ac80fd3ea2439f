"""Repeated tokens on groups and classes: against the law of single tokens, at any length, and on strange texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders import qwen2_like, qwen3_like, smollm2_like
from catenary.architecture import Architecture, Causal, Chunk, HeadGroup, Rotary, Window
from catenary.errors import NotApplicable
from catenary.theory.coarse import coarse_energies
from catenary.theory.positions.places import make_grid
from catenary.theory.repeats.classes import TokenClasses
from catenary.theory.repeats.law import repeated_energies, rotation
from catenary.theory.repeats.long import class_energies, group_rotation, long_energies

NARROW = {"width": 256, "heads": 4, "kv_heads": 4, "head_dim": 64, "ffn": 1390}


def changed(architecture: Architecture, theta: float | None = None, width: int | None = None) -> Architecture:
    layer = architecture.layers[0]
    kernel = Causal() if width is None else Window(width)
    attention = replace(
        layer.attention,
        rotary=None if theta is None else Rotary(theta, 64),
        groups=(HeadGroup(layer.attention.heads, kernel),),
    )
    return replace(architecture, layers=(layer.with_mixers(attention),) * architecture.depth)


def zipf(length: int, kinds: int = 600, seed: int = 5) -> np.ndarray:
    weights = 1 / np.arange(1, kinds + 1)
    return np.random.default_rng(seed).choice(kinds, length, p=weights / weights.sum())


CASES = {
    "smollm2": (changed(smollm2_like(5), 1e5), zipf(220), 0.03, 0.015),
    "v2.7": (changed(qwen2_like(depth=5, std=0.08, **NARROW)), zipf(220), 0.03, 0.015),
    "v2.7 rotary": (changed(qwen2_like(depth=5, std=0.08, **NARROW), 1e4), zipf(220), 0.03, 0.015),
    "few kinds": (changed(qwen2_like(depth=3, std=0.08, **NARROW), 1e4), zipf(220, 30), 0.03, 0.015),
    "qk-norm": (changed(qwen3_like(depth=5, **NARROW), 1e5), zipf(220), 0.04, 0.02),
    "window": (changed(smollm2_like(4), 1e5, 64), zipf(220), 0.06, 0.03),
}


@pytest.mark.parametrize("case", list(CASES))
def test_classes_as_single_tokens(case: str) -> None:
    """Root mean square per class, and the last token, in dex."""
    architecture, ids, per_class, last = CASES[case]
    single, coarse = repeated_energies(architecture, ids), long_energies(architecture, ids)
    index = np.ceil(np.log2(np.bincount(ids)[ids])).astype(int)
    body = np.arange(ids.size) < ids.size - 1
    errors = [
        0.5 * np.log10(coarse[body & (index == kind)].mean() / single[body & (index == kind)].mean())
        for kind in np.unique(index[body])
    ]
    assert len(errors) >= 4
    assert np.abs(errors).max() < per_class
    assert abs(0.5 * np.log10(coarse[-1] / single[-1])) < last


def test_distinct_tokens_follow_the_strong_coupling() -> None:
    architecture = changed(qwen2_like(depth=5, std=0.08, **NARROW))
    found = long_energies(architecture, np.arange(700))
    difference = np.abs(0.5 * np.log10(found / coarse_energies(architecture, 700)))
    assert np.median(difference) < 0.001
    assert difference.max() < 0.01


def test_the_cost_does_not_grow_with_the_length() -> None:
    """The body of the profile falls like 1/L, as for distinct tokens; the last token stays."""
    architecture = changed(smollm2_like(2), 1e5)
    classes = TokenClasses(np.array([0.5, 0.3, 0.2]), np.array([0.0, 1e-3, 0.05]))
    short, long = (class_energies(architecture, length, classes) for length in (10_000, 200_000))
    assert long.shape == (3, 200_000)
    assert (long > 0).all()
    assert 0.5 * np.log10(short[0, 5_000] / long[0, 100_000]) == pytest.approx(1.3, abs=0.1)
    assert abs(0.5 * np.log10(short[-1, -1] / long[-1, -1])) < 0.15


def test_classes_of_a_text() -> None:
    ids = np.array([7, 7, 7, 7, 1, 2, 2, 3, 4, 5])
    classes, index = TokenClasses.of_ids(ids)
    assert index[-1] == classes.count - 1
    np.testing.assert_allclose(classes.share, [0.6, 0.4])
    np.testing.assert_allclose(classes.repeat, [(4 * 3 + 2) / 6 / 9, 0])
    distinct, same = (TokenClasses.of_ids(ids)[0] for ids in (np.arange(5), np.zeros(5, int)))
    np.testing.assert_allclose(distinct.share, [0.5, 0.5])
    np.testing.assert_allclose(same.repeat, [1, 1])


def test_rotation_between_groups() -> None:
    rotary = Rotary(1e4, 64)
    grid = make_grid(frozenset([Causal()]), 400)
    single, found = rotation(rotary, 64, 400), group_rotation(rotary, 64, grid)
    starts, ends = grid.starts.astype(int), grid.ends.astype(int)
    for g, h in ((0, 0), (3, 7), (50, 50), (20, 60), (55, 70)):
        block = single[starts[g] : ends[g], starts[h] : ends[h]]
        apart = block[~np.eye(len(block), dtype=bool)] if g == h and len(block) > 1 else block
        assert found[g, h] == pytest.approx(apart.mean(), abs=0.02)


TEXTS = {
    "one kind": np.zeros(40, int),
    "one kind twice": np.zeros(2, int),
    "alternating": np.arange(40) % 2,
    "halves": np.repeat([0, 1], 20),
    "first repeats": np.array([0, 0, 1, 2, 0, 3, 3, 3]),
    "late repeats": np.append(np.arange(20), np.full(20, 99)),
    "three kinds": np.random.default_rng(0).integers(0, 3, 140),
}


@pytest.mark.parametrize("text", list(TEXTS))
@pytest.mark.parametrize("std", [0.02, 0.08, 0.13])
def test_strange_texts_give_positive_numbers(text: str, std: float) -> None:
    """Logit variances from .01 to 19."""
    architecture = changed(qwen2_like(depth=3, std=std, **NARROW), 1e4)
    for law in (repeated_energies, long_energies):
        found = law(architecture, TEXTS[text])
        assert np.isfinite(found).all()
        assert (found > 0).all()


def test_chunks_are_refused() -> None:
    base = qwen2_like(depth=1, **NARROW)
    layer = base.layers[0]
    layer = layer.with_mixers(replace(layer.attention, groups=(HeadGroup(4, Chunk(8)),)))
    with pytest.raises(NotApplicable, match="not Chunk"):
        long_energies(replace(base, layers=(layer,)), zipf(32))
