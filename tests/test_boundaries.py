"""What joins do to a profile: planted effects are found at their size, trends and noise are not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.boundaries import FAR, NEAR, Layout, boundary_effect
from catenary.errors import InvalidInput
from catenary.text.chunked import chunked_windows
from catenary.text.controls import shuffled_windows, uniform_windows
from catenary.text.documents import Document
from catenary.text.synthetic import random_windows
from samples import noise, sample
from small_tokenizers import word_tokenizer

LENGTH, CHUNK = 256, 32


def bumps(height: float, trend: float = 0.0, curvature: float = 0.0) -> np.ndarray:
    """log10 of a curve with its boundary tokens ``height`` dex above a parabola."""
    x = np.arange(LENGTH) / LENGTH
    curve = trend * x + curvature * (x - 0.5) ** 2
    curve[CHUNK::CHUNK] += height
    return curve


def test_a_planted_effect_is_found_at_its_size() -> None:
    found = boundary_effect(sample(bumps(np.log10(1.75))[None]), CHUNK)
    assert found["boundary ratio"].value == pytest.approx(1.75, abs=1e-12)
    assert found["misaligned ratio"].value == pytest.approx(1, abs=1e-12)
    assert found["alignment rank"].value == 1
    assert found["share above 2"].value == 0
    assert found["boundary ratio"].low is None
    assert [r.value for r in found.single] == pytest.approx([1.75] * 7)
    # Within a chunk: one token at h, 31 at 0, their mean taken off.
    height = np.log(1.75)
    inside = np.exp(np.r_[height, np.zeros(CHUNK - 1)] - height / CHUNK)
    assert found.inside.values == pytest.approx(inside, abs=1e-12)


def test_a_straight_trend_cancels_and_a_bend_counts_as_its_second_difference() -> None:
    assert boundary_effect(sample(bumps(0, trend=2.0)[None]), CHUNK)["boundary ratio"].value == pytest.approx(1)
    steps = np.arange(NEAR, FAR + 1)
    bend = -np.log(10) * np.mean((steps / LENGTH) ** 2)
    found = boundary_effect(sample(bumps(0, curvature=1.0)[None]), CHUNK)["boundary ratio"].value
    assert np.log(found) == pytest.approx(bend, rel=1e-9)


def test_the_ratio_equals_one_written_out_position_by_position() -> None:
    curves = 10 ** noise(5, LENGTH, 0.3, seed=3)
    logs = np.log(curves)
    expected = []
    for b in range(CHUNK, LENGTH, CHUNK):
        if b + FAR <= LENGTH - 2:
            around = [logs[:, b + s * n] for n in range(NEAR, FAR + 1) for s in (-1, 1)]
            expected.append(logs[:, b] - np.mean(around, axis=0))
    found = boundary_effect(sample(np.log10(curves)), CHUNK)
    assert np.log(found["boundary ratio"].value) == pytest.approx(np.mean(expected))
    assert found["share above 2"].value == pytest.approx(np.mean(np.exp(expected) > 2))


def test_intervals_cover_the_truth_about_nineteen_times_in_twenty() -> None:
    held = 0
    for seed in range(200):
        drawn = bumps(np.log10(1.3)) + noise(12, LENGTH, 0.3, seed)
        reading = boundary_effect(sample(drawn), CHUNK, seed=seed)["boundary ratio"]
        assert reading.low is not None
        assert reading.high is not None
        held += reading.low <= 1.3 <= reading.high
    assert 180 <= held <= 198  # binomial, 3 sd about 190


def test_noise_alone_ranks_anywhere() -> None:
    ranks = [boundary_effect(sample(noise(6, LENGTH, 0.3, s)), CHUNK)["alignment rank"].value for s in range(60)]
    assert np.mean(ranks) == pytest.approx((CHUNK + 1) / 2, abs=3.6)  # 3 sd of a mean of 60 uniform ranks


def test_neighbours_never_hold_a_boundary() -> None:
    layout = Layout.of(LENGTH, CHUNK)
    for shift in range(CHUNK):
        for place in layout.places(shift):
            assert not (layout._around(int(place)) % CHUNK == 0).any()


@pytest.mark.parametrize("chunk", [3, LENGTH, LENGTH // 2])
def test_a_chunk_that_does_not_fit_is_refused(chunk: int) -> None:
    with pytest.raises(InvalidInput, match="chunk must"):
        boundary_effect(sample(noise(2, LENGTH, 0.1)), chunk)


def test_short_chunks_have_nearer_neighbours() -> None:
    curve = np.zeros(64)
    curve[8::8] = 0.4
    found = boundary_effect(sample(curve[None]), 8)
    assert found.layout.far == 3
    assert found["boundary ratio"].value == pytest.approx(10**0.4)


def test_shuffled_windows_keep_tokens_and_opening_and_lose_their_order() -> None:
    tokenizer = word_tokenizer(4000, template="<s> $A")
    texts = [Document(" ".join(f"w{50 * d + n}" for n in range(50)), f"d{d}", "here") for d in range(40)]
    windows = chunked_windows(texts, tokenizer, length=64, count=4, seed=0, chunk=16)
    shuffled = shuffled_windows(windows, seed=5)
    assert (shuffled.ids[:, 0] == tokenizer.bos_token_id).all()
    assert (np.sort(shuffled.ids, axis=1) == np.sort(windows.ids, axis=1)).all()
    assert (shuffled.ids != windows.ids).mean() > 0.9
    assert len({tuple(np.argsort(row)) for row in shuffled.ids}) == 4
    assert shuffled.kind == "shuffled"
    assert shuffled.report["shuffled"] == "chunked"
    assert shuffled.sources == ()
    assert (shuffled_windows(windows, seed=5).ids == shuffled.ids).all()
    with pytest.raises(InvalidInput, match="tokens of a text"):
        shuffled_windows(random_windows(16, 2, 0), 0)


def test_uniform_windows_hold_ordinary_tokens_evenly() -> None:
    tokenizer = word_tokenizer(20, template="<s> $A")
    windows = uniform_windows(tokenizer, length=101, count=40, seed=1, vocabulary=13)
    assert (windows.ids[:, 0] == tokenizer.bos_token_id).all()
    drawn = windows.ids[:, 1:]
    assert set(np.unique(drawn)) == set(range(3, 13))
    counts = np.unique(drawn, return_counts=True)[1]
    assert abs(counts - 400).max() < 4 * np.sqrt(400 * 0.9)
    with pytest.raises(InvalidInput, match="ordinary tokens"):
        uniform_windows(tokenizer, length=16, count=1, seed=0, vocabulary=3)
