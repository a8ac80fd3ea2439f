"""Synthetic windows: distinct tokens for random vectors, and tokens by Zipf's law with their repeat rate."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.text import random_windows, repeat_probability, zipf_repeat_probability, zipf_windows
from catenary.text.windows import Windows


def test_random_windows_have_distinct_tokens_and_gaussian_vectors() -> None:
    windows = random_windows(50, 3, 7)
    assert (windows.kind, windows.vectors, windows.seed, len(windows)) == ("random", "gaussian", 7, 3)
    assert (windows.ids == np.arange(50)).all()
    assert windows.report["repeat_probability"] == repeat_probability(windows.ids) == 0.0


@pytest.mark.parametrize(("vocabulary", "exponent"), [(1, 1), (7, 0), (10, 1), (40, 2)])
def test_zipf_repeat_probability_in_fractions(vocabulary: int, exponent: int) -> None:
    weights = [Fraction(1, rank**exponent) for rank in range(1, vocabulary + 1)]
    exact = sum(w * w for w in weights) / sum(weights) ** 2
    assert zipf_repeat_probability(vocabulary, exponent) == pytest.approx(float(exact), rel=1e-14)


def test_zipf_repeat_probability_of_the_default_vocabulary() -> None:
    # zeta(2) and the harmonic number by their asymptotic series, M = 151,936.
    m = 151_936
    squares = np.pi**2 / 6 - 1 / m + 1 / (2 * m**2)
    harmonic = np.log(m) + np.euler_gamma + 1 / (2 * m)
    assert zipf_repeat_probability() == pytest.approx(squares / harmonic**2, rel=1e-12)
    assert zipf_repeat_probability() == pytest.approx(0.010513, abs=5e-7)


def test_zipf_tokens_have_the_frequencies_and_the_repeat_rate_of_the_law() -> None:
    windows = zipf_windows(500, 400, 0, vocabulary=1000)
    assert (windows.kind, windows.vectors) == ("zipf", "model")
    draws = windows.ids.size
    probability = 1 / np.arange(1, 1001) / np.sum(1 / np.arange(1, 1001))
    counts = np.bincount(windows.ids.ravel(), minlength=1000)
    assert len(counts) == 1000
    spread = np.sqrt(draws * probability * (1 - probability))
    z = (counts - draws * probability) / spread
    assert abs(z).max() < 4.5  # of 1000 normal values: p = .007
    assert np.mean(z**2) == pytest.approx(1, abs=0.2)  # its sd is sqrt(2/1000) = .045
    expected = windows.report["repeat_probability"]
    assert expected == zipf_repeat_probability(1000, 1.0)
    # Per window the rate scatters by a few percent of itself; 400 windows bring that below 1 %.
    assert repeat_probability(windows.ids) == pytest.approx(expected, rel=0.01)


def test_repeat_probability_counts_pairs_within_windows() -> None:
    ids = np.random.default_rng(0).integers(0, 5, size=(4, 12))
    pairs = [[a == b for a, b in combinations(window.tolist(), 2)] for window in ids]
    assert repeat_probability(ids) == pytest.approx(np.mean(pairs), rel=1e-15)
    assert repeat_probability(ids[0]) == pytest.approx(np.mean(pairs[0]), rel=1e-15)
    assert repeat_probability(np.array([3, 3])) == 1.0


def test_a_seed_fixes_zipf_tokens() -> None:
    assert (zipf_windows(20, 2, 5).ids == zipf_windows(20, 2, 5).ids).all()
    assert (zipf_windows(20, 2, 5).ids != zipf_windows(20, 2, 6).ids).any()
    assert zipf_windows(20, 2, 5, vocabulary=1).ids.max() == 0


def test_requests_that_make_no_sense_are_refused() -> None:
    for build in (random_windows, zipf_windows):
        for arguments in ((1, 1, 0), (2, 0, 0), (2, 1, -1)):
            with pytest.raises(InvalidInput, match="must be >="):
                build(*arguments)
    for options in ({"vocabulary": 0}, {"exponent": -1.0}, {"exponent": float("nan")}):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            zipf_windows(2, 1, 0, **options)  # type: ignore[arg-type]
    for ids in (np.zeros((1, 1), dtype=np.int64), np.zeros((1, 2, 2), dtype=np.int64)):
        with pytest.raises(InvalidInput, match="ids must have shape"):
            repeat_probability(ids)


def test_ids_that_are_no_whole_numbers_are_refused() -> None:
    for ids in (np.array([[0.9, 1.7]]), np.zeros((1, 4)), np.array([["a", "b"]])):
        with pytest.raises(InvalidInput, match="ids must be whole numbers"):
            Windows(ids)
