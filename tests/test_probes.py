"""Probes are functions of their address; precision says what they buy."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.measure.precision import effective_rank, precision, probe_error, probes_for
from catenary.measure.probes import cotangent, token_vectors


def test_probe_is_a_function_of_its_address() -> None:
    first = cotangent(8, seed=1, net=2, sequence=3, probe=4)
    assert np.array_equal(first, cotangent(8, seed=1, net=2, sequence=3, probe=4))
    for other in ({"seed": 2}, {"net": 3}, {"sequence": 4}, {"probe": 3}):
        address = {"seed": 1, "net": 2, "sequence": 3, "probe": 4, **other}
        assert not np.isclose(first, cotangent(8, **address)).any()
    # exchanging two words of the address is another probe
    assert not np.isclose(first, cotangent(8, seed=1, net=2, sequence=4, probe=3)).any()


def test_draws_are_pinned() -> None:
    """Stored results are rerun from their seeds: these values, from numpy 2.x, must not change between versions."""
    probe = [0.4390156854572493, -0.04922353449142413, -1.0382931968949336]
    vector = [0.18738329045061983, -0.017212005437238914, 0.7953245262912653]
    np.testing.assert_array_equal(cotangent(3, seed=7, net=1, sequence=2, probe=3), probe)
    np.testing.assert_array_equal(token_vectors(1, 3, seed=7, sequence=2)[0], vector)


def test_probes_are_standard_normal_and_independent() -> None:
    rows = np.array([cotangent(64, seed=0, net=0, sequence=s, probe=p) for s in range(20) for p in range(20)])
    count = rows.size
    assert abs(rows.mean()) < 4 / np.sqrt(count)
    assert abs((rows**2).mean() - 1) < 4 * np.sqrt(2 / count)
    gram = rows @ rows.T / 64
    off = gram[np.triu_indices(len(gram), 1)]
    assert abs(off).max() < 6 / np.sqrt(64)


def test_inputs_and_probes_of_one_seed_differ() -> None:
    vector = token_vectors(1, 16, seed=0, sequence=0)[0]
    assert not np.isclose(vector, cotangent(16, seed=0, net=0, sequence=0, probe=0)).any()


@pytest.mark.parametrize("spectrum", [np.ones(20), np.linspace(0, 1, 40) ** 2, np.r_[3.0, np.full(30, 0.3)]])
def test_effective_rank_from_probes_is_that_of_the_spectrum(spectrum: np.ndarray) -> None:
    true = spectrum.sum() ** 2 / (spectrum**2).sum()
    rng = np.random.default_rng(0)
    # 3,000 members stand for independent positions
    energy = (rng.standard_normal((3000, 64, spectrum.size)) ** 2 @ spectrum)[:, :, None]
    pilot = energy[:, :4]
    # one strong direction among many weak ones makes variance follow the mean: +21 % from 4 probes, 2 % from 64
    assert effective_rank(pilot) == pytest.approx(true, rel=0.25 if true < 15 else 0.08)
    assert effective_rank(energy) == pytest.approx(true, rel=0.04)
    measured = np.sqrt(pilot.mean(1)) / np.sqrt(spectrum.sum()) - 1
    assert np.sqrt((measured**2).mean()) == pytest.approx(probe_error(4, true), rel=0.08)


def test_words_of_precision() -> None:
    energy = np.random.default_rng(0).chisquare(10, (1, 8, 30))
    assert "8 probes" in precision(energy).words
    assert "32 would give" in precision(energy).words
    one = precision(energy[:, :1])
    assert one.relative_error is None
    assert "unknown" in one.words
    assert precision(energy[:, :1], exact=True).relative_error == 0


def test_probes_for_is_the_inverse_of_probe_error() -> None:
    for rank in (5.0, 23.7):
        for count in (1, 4, 37):
            assert probes_for(probe_error(count, rank), rank) == count
            assert probes_for(probe_error(count, rank) * 0.999, rank) == count + 1
    with pytest.raises(InvalidInput, match="target_error must be in"):
        probes_for(1.5, 10)
    with pytest.raises(InvalidInput, match="probes must be >= 1"):
        probe_error(0, 10)
