"""The rollout against dense matrices, exact fractions, the Cesàro law, and the published code's own numbers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.architecture import Alibi, Causal, Chunk, Prefix, Window
from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.positions.kernels import Decaying, Windowed, operator
from catenary.theory.rollout.attention import Head, Prior, head_mean
from catenary.theory.rollout.content import content_diagonal
from catenary.theory.rollout.control import (
    control_quantity,
    cumulative_columns,
    monotonicity_violations,
    row_entropies,
)
from catenary.theory.rollout.fading import FadingWindow
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import one_series_slopes, published_figures
from catenary.theory.rollout.schedules import Constant
from catenary.theory.rollout.sides import Full, Mask, mask_of, slope_of
from oracles import rollout as oracle

GOLDEN = json.loads((Path(__file__).parent / "golden" / "rollout.json").read_text())
PLACES = {"first": 0, "p1": 1, "p64": 64, "middle": 128, "p192": 192, "p254": 254, "last": 255}
L = 23

MASKS: dict[str, tuple[Mask, oracle.Sees]] = {
    "causal": (Causal(), lambda i, j: j <= i),
    "window 1": (Window(1), lambda i, j: j == i),
    "window 2": (Window(2), lambda i, j: i - 1 <= j <= i),
    "window 7": (Window(7), lambda i, j: i - 6 <= j <= i),
    "window 40": (Window(40), lambda i, j: j <= i),
    "prefix": (Prefix(9), lambda i, j: j <= i or (i < 9 and j < 9)),
    "full": (Full(), lambda i, j: True),
}


def layers(entry: dict[str, Any], *, bug: bool = False) -> list[Any]:
    content = content_diagonal(entry["content_diagonal"], entry["layers"], entry["heads"], only_first_heads=bug)
    return [
        head_mean([Head(slope, content=own) for slope, own in zip(entry["slopes"], row, strict=True)], entry["length"])
        for row in content
    ]


@pytest.mark.parametrize("entry", GOLDEN["entries"], ids=lambda entry: entry["name"])
def test_published_values(entry: dict[str, Any]) -> None:
    strengths = np.array(entry["lambdas"])
    for bug, suffix in ((False, ""), (True, "_with_published_bug")):
        if "golden" + suffix not in entry:
            continue
        made = layers(entry, bug=bug)
        row = rollout_row(made, strengths)
        known = entry["golden" + suffix]
        for name, place in PLACES.items():
            assert row[place] == pytest.approx(known[name], rel=1e-9)
        assert int(row.argmin()) == known["argmin"]
        if "control" + suffix in entry:
            assert control_quantity(made, strengths) == pytest.approx(entry["control" + suffix], abs=1e-6)


def test_published_example_and_attention_alone() -> None:
    example, bare = GOLDEN["others"]
    made = [head_mean([Head(example["slopes"][0])], example["length"])] * example["layers"]
    strengths = Constant(example["lambda"]).strengths(example["layers"])
    cases = [(example, made, strengths, 32)]
    mpt = GOLDEN["entries"][0]
    cases.append((bare, layers(mpt), Constant(1.0).strengths(mpt["layers"]), 128))
    for known, attentions, values, middle in cases:
        row = rollout_row(attentions, values)
        shown = (row[0], row[middle], row[-1], control_quantity(attentions, values))
        # Printed with seven digits.
        assert shown == pytest.approx([known[n] for n in ("first", "middle", "last", "control")], rel=2e-7)
        assert int(row.argmin()) == known["argmin"]


@pytest.mark.parametrize("slope", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("content", [-3.0, 0.0, 2.5])
@pytest.mark.parametrize("name", MASKS)
def test_against_dense_softmax(name: str, content: float, slope: float) -> None:
    mask, sees = MASKS[name]
    head = Prior(Head(slope, mask, content, 1.7), L)
    # A base, equal for all keys, cancels.
    known = oracle.attention(L, sees, slope, content, 1.7, base=11.0)
    x = np.random.default_rng(1).normal(size=(3, L))
    np.testing.assert_allclose(head.average(x), x @ known.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(head.adjoint(x), x @ known, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(head.diagonal, known.diagonal(), rtol=1e-12)
    assert head.adjoint(np.eye(L)).sum(axis=1) == pytest.approx(np.ones(L), rel=1e-13)


def test_chunks() -> None:
    known = oracle.attention(L, lambda i, j: j <= i and i // 5 == j // 5, content=1.2)
    head = Prior(Head(mask=Chunk(5), content=1.2), L)
    np.testing.assert_allclose(head.adjoint(np.eye(L)), known, rtol=1e-12)
    with pytest.raises(NotApplicable, match="no slope inside chunks"):
        _ = Prior(Head(0.5, Chunk(5)), L).sides


@pytest.mark.parametrize("kernel", [Causal(), Window(4), Chunk(6), Alibi(0.7), Prefix(5)], ids=str)
def test_without_content_it_is_the_mean_kernel(kernel: Any) -> None:
    prior = Prior(Head(slope_of(kernel), mask_of(kernel)), L)
    x = np.random.default_rng(0).random(L)
    np.testing.assert_allclose(prior.average(x), operator(kernel, L).average(x), rtol=1e-13)


def test_extreme_scores_stay_finite() -> None:
    for content in (-2000.0, 2000.0):
        shares = Prior(Head(3.0, content=content), L).shares
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-15)
        assert shares[0, 0] == 1.0
        assert shares[0, 5] == (content > 0)


@given(
    st.fractions(Fraction(1, 9), Fraction(1), max_denominator=9),
    st.fractions(Fraction(1, 20), Fraction(20), max_denominator=20),
    st.lists(st.fractions(Fraction(0), Fraction(1), max_denominator=9), min_size=1, max_size=4).filter(any),
)
@settings(max_examples=25, deadline=None)
def test_against_exact_fractions(factor: Fraction, own: Fraction, strengths: list[Fraction]) -> None:
    head = Head(-math.log(factor) if factor < 1 else 0.0, content=math.log(own))
    row = rollout_row([head_mean([head], 9)] * len(strengths), np.array([float(s) for s in strengths]))
    # Relative, entry by entry: nothing cancels, also for a prior below 0.
    np.testing.assert_allclose(row, [float(x) for x in oracle.exact_row(9, factor, own, strengths)], rtol=1e-12)


def test_product_order_heads_and_queries() -> None:
    """Layers do not commute here, heads have weights, and every row can be asked for."""
    windows = [Head(0.4, Window(3)), Head(0.1, content=1.0, count=2.0)]
    attentions = [head_mean(windows, L), head_mean([Head(2.0)], L), head_mean([Head()], L)]
    strengths = np.array([0.9, 0.3, 0.6])
    causal = MASKS["causal"][1]
    window = oracle.attention(L, lambda i, j: i - 2 <= j <= i, 0.4)
    dense = [
        (window + 2 * oracle.attention(L, causal, 0.1, 1.0)) / 3,
        oracle.attention(L, causal, 2.0),
        oracle.attention(L, causal),
    ]
    known = oracle.rollout(dense, strengths.tolist())
    for query in (None, 0, 7):
        row = rollout_row(attentions, strengths, query)
        np.testing.assert_allclose(row, known[-1 if query is None else query], rtol=1e-12, atol=1e-300)
        assert row.sum() == pytest.approx(1, abs=1e-14)


def test_equal_to_the_cesaro_law_without_slopes() -> None:
    mixing = [0.5, 0.05, 1.0, 0.3]
    row = rollout_row([head_mean([Head(count=12)], 300)] * 4, np.array(mixing))
    np.testing.assert_allclose(row, cesaro_row(300, 4, mixing), rtol=1e-13)


def test_windows_reach_no_further() -> None:
    row = rollout_row([head_mean([Head(0.2, Window(4))], 30)] * 3, Constant(0.5).strengths(3))
    assert (row[:20] == 0).all()
    assert (row[20:] > 0).all()


def test_fading_window_is_a_kernel() -> None:
    kernel = FadingWindow(L, 6, 0.35)
    dense = oracle.attention(L, lambda i, j: i - 5 <= j <= i, 0.35)
    np.testing.assert_allclose(kernel.dense(), dense, rtol=1e-13)
    np.testing.assert_allclose(kernel.adjoint(np.eye(L)), dense.T, rtol=1e-13)
    np.testing.assert_allclose(kernel.counts, 1 / (dense**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(FadingWindow(L, L, 0.35).dense(), Decaying(L, 0.35).dense(), rtol=1e-13)
    np.testing.assert_allclose(FadingWindow(L, 6, 1e-9).dense(), Windowed(L, 6).dense(), rtol=1e-7)
    with pytest.raises(InvalidInput, match="slope must be finite and > 0, got 0"):
        FadingWindow(L, 6, 0.0)


def test_diagonal_of_a_causal_rollout_is_a_product() -> None:
    attentions = [head_mean([Head(0.5, content=c)], L) for c in (0.0, 1.0, 2.0)]
    strengths = np.array([0.2, 0.5, 0.3])
    for query in range(L):
        expected = np.prod([1 - s * (1 - a.diagonal[query]) for a, s in zip(attentions, strengths, strict=True)])
        assert rollout_row(attentions, strengths, query)[query] == pytest.approx(expected, rel=1e-13)


def test_control_entropies_and_monotonicity() -> None:
    attention = head_mean([Head(0.3), Head(0.05, content=2.0), Head(mask=Window(5))], L)
    causal = MASKS["causal"][1]
    dense = sum((
        oracle.attention(L, causal, 0.3),
        oracle.attention(L, causal, 0.05, 2.0),
        oracle.attention(L, lambda i, j: i - 4 <= j <= i),
    )) / 3  # fmt: skip
    logs = np.log(np.where(dense > 0, dense, 1))
    np.testing.assert_allclose(row_entropies(attention), -(dense * logs).sum(axis=1), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.stack(list(cumulative_columns(attention))).T, np.cumsum(dense, axis=1), rtol=1e-12)
    assert control_quantity([attention], np.ones(1)) == pytest.approx(1 - dense.diagonal().min())


def test_violations_are_counted() -> None:
    """Attention that looks at content, against three loops."""
    scores = np.where(np.tri(L) > 0, np.random.default_rng(3).normal(size=(L, L)), -np.inf)
    weights = np.exp(scores)
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    wrong = [
        (cumulative[j, k] - cumulative[i, k], cumulative[j, k])
        for k in range(L) for i in range(L) for j in range(i + 1, L) if cumulative[i, k] - cumulative[j, k] < -1e-10
    ]  # fmt: skip
    found = monotonicity_violations(iter(cumulative.T))
    assert found.triples == L * L * (L - 1) // 2
    assert found.rate == pytest.approx(len(wrong) / found.triples)
    assert wrong
    assert found.size == pytest.approx(np.mean([d for d, _ in wrong]))
    assert found.relative == pytest.approx(np.mean([d / top for d, top in wrong]))


@pytest.mark.parametrize("name", MASKS)
def test_priors_are_monotone(name: str) -> None:
    heads = [Head(slope, MASKS[name][0], content) for slope in (0.0, 0.3) for content in (-2.0, 0.0, 3.0)]
    found = monotonicity_violations(cumulative_columns(head_mean(heads, L)))
    assert found.rate == 0.0
    assert math.isnan(found.size)


def test_content_priors() -> None:
    np.testing.assert_array_equal(content_diagonal(2.0, 2, 3), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(content_diagonal([1.0, 2.0], 2, 2), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(content_diagonal([[1.0, 2.0]], 2, 2), [[1, 2], [1, 2]])
    np.testing.assert_array_equal(content_diagonal([[1.0], [2.0]], 2, 2, only_first_heads=True), [[1, 0], [2, 0]])
    for bad in ([1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]], np.ones((1, 1, 1)), [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidInput, match="content must be a number, 2 numbers, or 2 x 2"):
            content_diagonal(bad, 2, 2)
    with pytest.raises(InvalidInput, match="content must be finite, got nan"):
        content_diagonal(float("nan"), 2, 2)


def test_published_bug_at_one_head_of_many() -> None:
    """A[31, 31] at diag 3.5, L = 32: the values that were measured with the published code."""
    for heads, known in ((1, 0.5165), (2, 0.2739), (4, 0.1526), (32, 0.0464)):
        row = content_diagonal([[3.5]], 1, heads, only_first_heads=True)[0]
        assert head_mean([Head(content=c) for c in row], 32).diagonal[31] == pytest.approx(known, abs=5e-5)


def test_published_figures() -> None:
    predicted, measured = np.array([4.0, 1.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.0, 4.0, 9.0])
    found = published_figures(predicted, measured)
    a, b = predicted / 8, measured[:4] / 10
    assert found.wasserstein == pytest.approx(np.abs(np.cumsum(a - b))[:-1].sum() / 3)
    # Ranks 4, 1.5, 1.5, 3 against 3, 2, 1, 4.
    assert found.spearman == pytest.approx(np.corrcoef([4, 1.5, 1.5, 3], [3, 2, 1, 4])[0, 1])
    with pytest.raises(InvalidInput, match="measured must hold at least 2 values"):
        published_figures(predicted, np.ones(4))


def test_slopes_of_one_series() -> None:
    assert one_series_slopes(112)[0] == pytest.approx(0.95170, abs=5e-6)
    np.testing.assert_allclose(one_series_slopes(32), GOLDEN["entries"][0]["slopes"], rtol=1e-15)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"strengths must be one for each of 1 layers, got 2"):
        rollout_row([head_mean([Head()], 4)], np.ones(2))
    with pytest.raises(InvalidInput, match=r"attentions must all have one length, got \[4, 5\]"):
        rollout_row([head_mean([Head()], 4), head_mean([Head()], 5)], np.ones(2))
    with pytest.raises(InvalidInput, match=r"query must be in 0\.\.3"):
        rollout_row([head_mean([Head()], 4)], np.ones(1), 4)
    for bad in ({"slope": -1.0}, {"content": math.inf}, {"temperature": 0.0}, {"count": -1.0}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Head(**bad)
    with pytest.raises(InvalidInput, match="heads must hold at least one head"):
        head_mean([], 4)
