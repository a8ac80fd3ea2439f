"""The birth law over repeated tokens: golden values, drawn heads, distinct tokens, limits, windows, precision."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import qwen2_like, qwen3_like, smollm2_like
from catenary.architecture import (
    Alibi,
    Architecture,
    Causal,
    Chunk,
    Gate,
    HeadGroup,
    Kernel,
    Layer,
    Prefix,
    Rotary,
    Sink,
    Window,
    parallel,
    post_branch,
    sandwich,
)
from catenary.errors import NotApplicable
from catenary.theory.attention.mixer import attention_mixer
from catenary.theory.attention.scores import Scores
from catenary.theory.birth import exact_energies, singles
from catenary.theory.embedding import embedded
from catenary.theory.positions.pairs import Pairs
from catenary.theory.repeats import layer as repeats
from catenary.theory.repeats.attention import RepeatedAttention
from catenary.theory.repeats.band import band
from catenary.theory.repeats.caps import Cap
from catenary.theory.repeats.law import repeated_energies, rotation
from catenary.theory.repeats.layer import Law, Values
from catenary.theory.repeats.likeness import Likeness
from oracles.drawn_attention import drawn_attention

GOLDEN = Path(__file__).parent / "golden"
IDS = np.array([0, 1, 2, 0, 3, 4, 0, 1, 5, 6, 0, 7, 8, 2, 0, 9, 1, 10, 0, 11, 12, 0, 13, 1])


def with_attention(architecture: Architecture, **changes: Any) -> Architecture:
    layer = architecture.layers[0]
    layer = layer.with_mixers(replace(layer.attention, **changes))
    return replace(architecture, layers=(layer,) * architecture.depth)


def strong_like(depth: int = 4, std: float = 0.08) -> Architecture:
    """Logit variance 2.7 at std .08."""
    return qwen2_like(width=256, depth=depth, heads=4, kv_heads=4, ffn=1390, std=std)


def rotated(architecture: Architecture, theta: float | None) -> Architecture:
    return with_attention(architecture, rotary=None if theta is None else Rotary(theta, 64))


def zipf(length: int, seed: int = 5) -> np.ndarray:
    weights = 1 / np.arange(1, 601)
    return np.random.default_rng(seed).choice(600, length, p=weights / weights.sum())


def dex(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """log10 of the ratio of norms."""
    return 0.5 * np.log10(one / two)


@pytest.mark.parametrize("entry", json.loads((GOLDEN / "repeats.json").read_text())["entries"], ids=lambda e: e["name"])
def test_values_of_an_earlier_program(entry: dict[str, Any]) -> None:
    """It has moments on a coarser grid and a fixed point of fewer rounds, which the first tokens feel most."""
    base = smollm2_like(4) if entry["name"] == "smollm2" else strong_like(4)
    found = repeated_energies(rotated(base, entry["rope_theta"]), np.array([k * k % 23 for k in range(64)]))
    at = np.array([int(j) for j in entry["values"]])
    error = np.abs(dex(found[at - 1], np.array(list(entry["values"].values()))))
    assert error[at <= 3].max() < 0.012
    assert error[at > 3].max() < 0.004
    assert np.median(error) < 0.0015


# --- one layer, drawn -----------------------------------------------------------------------------------------

KINDS = {"once": [9, 17], "few": [2, 13, 1, 16], "often": [6, 10, 14, 18]}


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(("theta", "kernel"), [(None, Causal()), (100.0, Causal()), (None, Window(9))])
def test_one_layer_as_drawn(deep: bool, theta: float | None, kernel: Kernel) -> None:
    """Covariance of outputs and of gradients, per class of tokens, against heads with an exact softmax, v = 1."""
    n = IDS.size
    same = IDS[:, None] == IDS
    r = 0.08 + 0.5 * same + 0.42 * np.eye(n) if deep else same.astype(float)
    gradients = [np.eye(n), 0.5 * r + 0.5 * np.eye(n)]
    width = kernel.width if isinstance(kernel, Window) else None
    drawn = drawn_attention(r, 1.0, gradients, theta=theta, width=width, heads=1500)
    turning = None if theta is None else rotation(Rotary(theta, 16), 16, n)
    attention = RepeatedAttention(1.0, Scores(1.0, 16), same, turning, kernel)
    outcome = attention.forward(Pairs(r, np.ones(n)))
    outputs = outcome.added.matrix
    apart, copies = ~same, same & ~np.eye(n, dtype=bool)
    np.testing.assert_allclose(outputs.diagonal(), drawn.outputs.diagonal(), rtol=0.03)
    assert outputs[apart].sum() == pytest.approx(drawn.outputs[apart].sum(), rel=0.01)
    assert outputs[copies].sum() == pytest.approx(drawn.outputs[copies].sum(), rel=0.08)
    law = Law.of(attention.told, r, 1.0)
    values = Values.of(r, law)
    for d, at_values, at_keys, at_queries in zip(gradients, drawn.values, drawn.keys, drawn.queries, strict=True):
        one, two = law.through_values(d).diagonal(), law.through_scores(d, values).diagonal()
        whole = outcome.passed.backward(Pairs(d, d.diagonal())).same
        np.testing.assert_allclose(whole, one + two, rtol=1e-9)
        scores = (at_keys + at_queries).diagonal()
        every, seen = law.through_values(d) + law.through_scores(d, values), at_values + at_keys + at_queries
        # Between copies keys have gradients that rotary positions turn away from each other.
        assert every[copies].sum() == pytest.approx(seen[copies].sum(), rel=0.15)
        for chosen in (np.array(kind) for kind in KINDS.values()):
            assert one[chosen].sum() == pytest.approx(at_values.diagonal()[chosen].sum(), rel=0.05)
            assert two[chosen].sum() == pytest.approx(scores[chosen].sum(), rel=0.1)


def test_copies_are_counted_beside_what_all_keys_share() -> None:
    """Early tokens are more alike than late ones: only what exceeds a row's own background counts as a copy."""
    n, ids = 20, np.array([0, 1, 2, 0, 0, *range(3, 18)])
    keys = np.full((n, n), 0.2)
    keys[:6, :6] = 0.6
    keys[ids[:, None] == ids] = 1.0
    near = Likeness.of(keys, (ids[:, None] != ids).astype(float), band(n, Causal()))
    counted = near.multiplicities(1.3)
    row = near.seen.row(counted.first, 5)
    np.testing.assert_allclose(near.background[1:6], 0.6)
    np.testing.assert_allclose(row[[0, 3, 4]], 3)
    np.testing.assert_allclose(row[[1, 2, 5]], 1)


def test_equally_correlated_tokens_follow_the_strong_coupling() -> None:
    """One layer, R = .3 between all tokens: outputs, and gradients from unlike pairs of queries."""
    n, attention = 60, strong_like(1, std=0.0625).layers[0].attention
    r = 0.3 + 0.7 * np.eye(n)
    x = Pairs(r, np.ones(n))
    known = attention_mixer(attention, 256, singles(n), finite_width=False).forward(x)
    same = np.eye(n, dtype=bool)
    found = RepeatedAttention(attention.gain(256), Scores.of(attention, 256, False), same).forward(x)
    np.testing.assert_allclose(found.added.matrix[20:, 20:], known.added.matrix[20:, 20:], rtol=3e-3)
    apart = Pairs(1 - np.eye(n), np.zeros(n))
    one, two = found.passed.backward(apart), known.passed.backward(apart)
    np.testing.assert_allclose(one.same[10:-1], two.same[10:-1], rtol=0.02)
    np.testing.assert_allclose(one.matrix[10:, :10], two.matrix[10:, :10], rtol=0.01)


# --- distinct tokens ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "median", "largest"),
    [
        # Where different tokens stay uncorrelated the two laws are the same; the first rows err most in both.
        (strong_like(5), 0.001, 0.008),
        (strong_like(5, std=0.0374), 0.001, 0.004),
        (qwen2_like(depth=6), 0.001, 0.001),
        # Where correlations differ between pairs, the strong coupling gives all of them the weight of equal tokens.
        (smollm2_like(5), 0.0025, 0.005),
        (qwen3_like(width=256, depth=5, heads=4, kv_heads=4, head_dim=64, ffn=1390), 0.006, 0.008),
    ],
    ids=["v2.7", "v.13", "qwen2", "smollm2", "narrow qk-norm"],
)
@pytest.mark.parametrize("theta", [None, 1e5])
def test_distinct_tokens_follow_the_strong_coupling(
    architecture: Architecture, median: float, largest: float, theta: float | None
) -> None:
    length = 140
    known = exact_energies(architecture, embedded(architecture, np.eye(length)))
    difference = np.abs(dex(repeated_energies(rotated(architecture, theta), np.arange(length)), known))
    assert np.median(difference) < median
    assert difference.max() < largest


def test_only_equality_of_tokens_counts() -> None:
    ids = zipf(60)
    names = np.random.default_rng(0).permutation(1000)
    architecture = strong_like(2)
    np.testing.assert_array_equal(repeated_energies(architecture, ids), repeated_energies(architecture, names[ids]))


def test_weak_logits_tend_to_first_order() -> None:
    """At v = .0007 and infinite width: within 1 % of what the coupling adds. One factor per token and query leaves .6 %
    where frequent tokens share rows, .1 % without."""
    ids = zipf(50)
    equal = (ids[:, None] == ids).astype(float)
    architecture = with_attention(strong_like(3), query_key_std=0.01)
    start = embedded(architecture, equal)
    first, none = (exact_energies(architecture, start, coupling) for coupling in ("first-order", "uniform"))
    found = repeated_energies(architecture, ids, finite_width=False)
    assert np.abs(found - first).max() < 0.01 * np.abs(first - none).max()


def test_logits_without_variance_attend_uniformly() -> None:
    ids = zipf(50)
    architecture = with_attention(strong_like(2), query_key_std=0.0)
    known = exact_energies(architecture, embedded(architecture, (ids[:, None] == ids).astype(float)), "uniform")
    np.testing.assert_allclose(repeated_energies(architecture, ids), known, rtol=2e-3)


# --- what the law adds ----------------------------------------------------------------------------------------


def test_frequent_tokens_get_less_than_the_strong_coupling_gives_them() -> None:
    """At v = 2.7 without rotation: frequent tokens fall, rare ones rise, by the measured .1 to .2 dex."""
    ids = zipf(160)
    architecture = strong_like(6)
    known = exact_energies(architecture, embedded(architecture, (ids[:, None] == ids).astype(float)))
    change = dex(repeated_energies(architecture, ids), known)[:-1]
    counts = np.bincount(ids)[ids][:-1]
    assert change[counts == 1].mean() > 0.05
    assert change[counts > 8].mean() < -0.1


def test_rotation_lowers_the_last_token() -> None:
    ids = zipf(160)
    plain, turned = (repeated_energies(rotated(strong_like(6, std=0.0625), theta), ids) for theta in (None, 1e4))
    assert dex(turned, plain)[-1] < -0.03


def test_rotation_of_part_of_the_channels() -> None:
    whole, half = (rotation(Rotary(1e4, dims), 64, 40) for dims in (64, 32))
    np.testing.assert_allclose(whole.diagonal(), 1)
    frequencies = 1e4 ** (-np.arange(16) / 16)
    assert half[3, 20] == pytest.approx(0.5 * np.cos(17 * frequencies).mean() + 0.5)


# --- layouts, windows, precision ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [parallel, sandwich, post_branch])
def test_every_layout_of_norms(layout: Any) -> None:
    """Distinct tokens in another layout: again the strong coupling, whose layouts are tested by themselves."""
    base = qwen2_like(width=256, depth=4, heads=4, kv_heads=4, ffn=1390, std=0.03, qk_norm=True)
    old = base.layers[0]
    layer: Layer = layout(old.attention, old.feed_forward, old.norm)
    architecture = replace(base, layers=(layer,) * 4)
    known = exact_energies(architecture, embedded(architecture, np.eye(70)))
    difference = np.abs(dex(repeated_energies(architecture, np.arange(70)), known))
    assert np.median(difference) < 0.006


def test_a_window_over_everything_is_none() -> None:
    ids = zipf(50)
    architecture = strong_like(2)
    wide = with_attention(architecture, groups=(HeadGroup(4, Window(50)),))
    np.testing.assert_array_equal(repeated_energies(architecture, ids), repeated_energies(wide, ids))


def test_windows_of_distinct_tokens_follow_the_strong_coupling() -> None:
    architecture = with_attention(strong_like(4), groups=(HeadGroup(2, Window(24)), HeadGroup(2)))
    known = exact_energies(architecture, embedded(architecture, np.eye(150)))
    difference = np.abs(dex(repeated_energies(architecture, np.arange(150)), known))
    assert np.median(difference) < 0.002
    assert difference.max() < 0.012


def test_a_gate_multiplies_as_in_the_strong_law() -> None:
    architecture = with_attention(strong_like(3), gate=Gate(0.05))
    known = exact_energies(architecture, embedded(architecture, np.eye(60)))
    assert np.median(np.abs(dex(repeated_energies(architecture, np.arange(60)), known))) < 0.002


def test_single_precision_and_fewer_queries_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = zipf(200)
    architecture = rotated(strong_like(3), 1e4)
    single = repeated_energies(architecture, ids)
    monkeypatch.setattr(repeats, "SINGLE_FROM", 1000)
    assert np.abs(dex(single, repeated_energies(architecture, ids))).max() < 2e-6


@pytest.mark.parametrize(
    ("changes", "median", "largest"),
    [
        ({"groups": (HeadGroup(4, Chunk(40)),)}, 0.002, 0.004),
        ({"groups": (HeadGroup(4, Prefix(30)),)}, 0.001, 0.003),
        ({"sink": Sink(1.0, 0.3)}, 0.002, 0.006),
        ({"softcap": 5.0}, 0.003, 0.005),
    ],
    ids=["chunk", "prefix", "sink", "soft-cap"],
)
def test_other_words_follow_the_strong_coupling_where_tokens_differ(
    changes: dict[str, Any], median: float, largest: float
) -> None:
    architecture = with_attention(strong_like(4, std=0.0625), **changes)
    known = exact_energies(architecture, embedded(architecture, np.eye(140)))
    found = repeated_energies(architecture, np.arange(140))
    np.testing.assert_array_equal(found > 0, known > 0)
    difference = np.abs(dex(found[known > 0], known[known > 0]))
    assert np.median(difference) < median
    assert difference.max() < largest


def test_a_sink_far_below_all_logits_is_none() -> None:
    ids, architecture = zipf(60), strong_like(2)
    known = repeated_energies(architecture, ids)
    found = repeated_energies(with_attention(architecture, sink=Sink(-20.0)), ids)
    np.testing.assert_allclose(found, known, rtol=1e-6)


def test_a_high_soft_cap_is_none() -> None:
    ids, architecture = zipf(60), strong_like(2, std=0.0625)
    found = repeated_energies(with_attention(architecture, softcap=1e3), ids)
    np.testing.assert_allclose(found, repeated_energies(architecture, ids), rtol=1e-4)


def test_a_soft_cap_as_drawn() -> None:
    """Spread of weights and slopes of many independent logits, v = 1.4, c = 4."""
    cap = Cap.of(1.4, 4.0)
    z = np.random.default_rng(0).standard_normal((400, 5000)) * np.sqrt(1.4)
    weights = np.exp(4 * np.tanh(z / 4))
    weights /= weights.sum(axis=1, keepdims=True)
    slopes = 1 - np.tanh(z / 4) ** 2
    second = (weights**2).sum(axis=1)
    assert np.exp(cap.variance) == pytest.approx(5000 * second.mean(), rel=0.01)
    ratio = 1.4 / cap.variance
    assert cap.slope == pytest.approx(np.sqrt(ratio) * (weights * slopes).sum(axis=1).mean(), rel=0.005)
    square = (weights**2 * slopes**2).sum(axis=1).mean() / second.mean()
    assert cap.square == pytest.approx(ratio * square, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "named"), [({"groups": (HeadGroup(4, Alibi(0.1)),)}, "Alibi"), ({"softcap": 1.0}, "soft-cap")]
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(NotApplicable, match=named):
        repeated_energies(with_attention(strong_like(1), **changes), zipf(8))


def test_scores_of_unequal_inputs_are_refused() -> None:
    attention = RepeatedAttention(1.0, Scores(1.0, 16), np.eye(4, dtype=bool))
    with pytest.raises(NotApplicable, match="need a norm in front"):
        attention.forward(Pairs(np.diag([1.0, 1, 1, 2]), np.array([1.0, 1, 1, 2])))
