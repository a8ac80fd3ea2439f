"""The numbers of a shape against loops and known curves, their intervals, reasons and output."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catenary as ct
from catenary.indices import INDICES
from catenary.profile import Profile
from catenary.reading import Reading, number
from catenary.sample import Sample
from catenary.shape import describe
from samples import noise, sample

L = 400


def falling() -> np.ndarray:
    """Falls as a power of position to the last block, then one spike."""
    rho = 3 / np.arange(1, L + 1) ** 0.4
    rho[-1] = 9.0
    return rho


def test_every_number_equals_loops() -> None:
    rho = falling()
    shape = describe(Profile(rho, average="expectation"))
    middle = [rho[j] for j in range(L) if 0.45 <= (j + 0.5) / L <= 0.55]
    mid = math.exp(sum(math.log(v) for v in middle) / len(middle))
    total, energy = sum(rho), sum(rho**2)
    edges = [1 + k * 398 // 15 for k in range(16)]  # 15 blocks of at least 400/16 tokens
    means = [sum(math.log10(v) for v in rho[a:b]) / (b - a) for a, b in pairwise(edges)]
    expected = {
        "first": 3.0,
        "mid": mid,
        "last": 9.0,
        "first/mid": 3.0 / mid,
        "last/mid": 9.0 / mid,
        "mid/before last": mid / rho[-2],
        "peak/trough": 10 ** (max(means) - min(means)),
        "argmin": (edges[14] + edges[15]) / 2 / L,
        "right arm": 0.0,
        "share first tenth": sum(rho[:40]) / total,
        "share last": 9.0 / total,
        "energy share first tenth": sum(rho[:40] ** 2) / energy,
        "energy share last": 81.0 / energy,
        "single-token max/min": 9.0 / rho[-2],
        "single-token max/min of the body": rho[1] / rho[-2],
    }
    for delta in (0.05, 0.1, 0.25):
        for name, inner in ((f"LIM {delta:g}", range(L)), (f"LIM {delta:g} body", range(1, L - 1))):
            edge = [rho[j] ** 2 for j in inner if (j + 0.5) / L < delta or (j + 0.5) / L > 1 - delta]
            rest = [rho[j] ** 2 for j in inner if delta <= (j + 0.5) / L <= 1 - delta]
            expected[name] = math.log(sum(edge) / len(edge) / (sum(rest) / len(rest)))
    assert set(expected) == {i.name for i in INDICES} == {r.name for r in shape.readings}
    for name, value in expected.items():
        assert shape[name].value == pytest.approx(value, rel=1e-12), name


def test_right_arm_of_a_symmetric_valley() -> None:
    x = np.linspace(-1, 1, 256)
    shape = describe(Profile(10 ** (x**2)))
    assert shape["argmin"].value == pytest.approx(0.5, abs=0.01)
    assert shape["right arm"].value == pytest.approx(7 / 15 * 254 / 256, abs=0.01)  # 7 of 15 blocks right of the trough


@given(st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_scale_moves_only_the_three_levels(scale: float) -> None:
    one, two = describe(Profile(falling())), describe(Profile(scale * falling()))
    for reading in one.readings:
        factor = scale if reading.name in ("first", "mid", "last") else 1.0
        assert two[reading.name].value == pytest.approx(factor * reading.value, rel=1e-9, abs=1e-12), reading.name


def test_sample_has_intervals_that_hold_the_truth() -> None:
    truth = np.log10(falling())
    names = [i.name for i in INDICES if i.resampled and i.name not in ("argmin", "right arm")]
    expected = describe(Profile(falling()))
    inside = dict.fromkeys(names, 0)
    runs = 30
    for seed in range(runs):
        shape = describe(sample(truth + noise(12, L, 0.1, seed)), average="log")
        assert shape.unit == "sequence"
        assert shape.count == 12
        for name in names:
            low, high = shape[name].low, shape[name].high
            inside[name] += low <= expected[name].value <= high
    # Log-averages of log-symmetric noise are unbiased: 95 % +- 4 % (binomial sd); sums only nearly so.
    assert all(count >= 24 for count in inside.values()), inside
    assert np.mean(list(inside.values())) / runs > 0.90


def test_argmin_interval_is_wide_where_the_trough_is_flat() -> None:
    x = np.linspace(-1, 1, 512)
    sharp = describe(sample(2 * np.abs(x) + noise(12, 512, 0.1)), average="log")["argmin"]
    flat = describe(sample(0.02 * np.abs(x) + noise(12, 512, 0.3)), average="log")["argmin"]
    assert sharp.high - sharp.low < 0.15
    assert flat.high - flat.low > 0.4


def test_single_tokens_come_with_their_warning_and_no_interval() -> None:
    shape = describe(sample(np.log10(falling()) + noise(6, L, 0.1)))
    for name in ("single-token max/min", "single-token max/min of the body"):
        assert "never a depth" in shape[name].meaning
        assert shape[name].low is None
    # and the number earns it: on a constant curve of L noisy tokens it is far from 1, while the blocks are not
    noisy = describe(sample(noise(2, 1024, 0.2)))
    assert noisy["single-token max/min"].value > 3
    assert noisy["peak/trough"].value < 1.3


@pytest.mark.parametrize(("weights", "average"), [("pretrained", "log"), ("untrained", "rms"), (None, "rms")])
def test_default_average_follows_the_weights(weights: str | None, average: str) -> None:
    s = sample(np.log10(falling()) + noise(6, L, 0.4), provenance={"weights": weights} if weights else {})
    shape = describe(s)
    assert shape.average == average
    assert shape["first"].value == pytest.approx(s.profile(average).values[0], rel=1e-12)
    assert describe(s, average="mean")["first"].value == pytest.approx(s.profile("mean").values[0], rel=1e-12)


def test_one_probe_says_the_error_is_unknown() -> None:
    shape = describe(sample(np.log10(falling())[None]))
    assert shape.verdict.words == "primacy + last-token spike"
    assert "error is unknown" in shape.unknown
    assert math.isnan(shape.noise_floor)
    assert math.isnan(shape.reliability)
    assert shape["first"].low is None
    assert "unknown" in shape.words()
    assert "unknown" in {n: v for n, v, _ in shape.rows()}["reliability"]


def test_constant_profile_has_no_trough() -> None:
    shape = describe(Profile(np.ones(64), label="level"))
    assert shape.verdict.words == "flat"
    assert math.isnan(shape["argmin"].value)
    assert shape["argmin"].reason == "every block is equal"
    assert shape["LIM 0.1"].value == 0.0
    assert "no lowest block" in shape.words()


def test_zeros_give_reasons_not_infinities() -> None:
    rho = np.concatenate([np.zeros(40), np.ones(60)])
    shape = describe(Profile(rho))
    assert shape["single-token max/min"].text.startswith("undefined: a token it divides by")
    assert shape["last/mid"].value == pytest.approx(1.0)
    assert shape["peak/trough"].reason
    json.dumps(shape.to_dict(), allow_nan=False)


@pytest.mark.parametrize("length", [5, 8, 10, 16, 31])
def test_short_profiles_name_what_is_missing(length: int) -> None:
    for item in (Profile(np.linspace(2, 1, length)), sample(noise(4, length, 0.1))):
        shape = describe(item)
        assert (shape["LIM 0.05"].reason == "") == (length > 10)  # x of the first token is 1/(2L) < .05 above 10
        if length == 5:
            assert shape["LIM 0.05"].reason.startswith("the profile is too short")
        assert any("shorter than 16 tokens" in line for line in shape.verdict.evidence)
        json.dumps(shape.to_dict(), allow_nan=False)


def test_exact_sample_of_one_has_no_scatter_to_resample() -> None:
    shape = describe(sample(np.log10(falling())[None], exact=True))
    assert "exact" in shape.unknown


def test_several_conditions_are_refused_with_what_to_do() -> None:
    energy = np.ones((2, 1, 1, 4, 1, 40))
    with pytest.raises(ct.InvalidInput, match="condition must be named"):
        describe(Sample(energy, ("vanilla", "chunked")))


def test_average_of_a_profile_cannot_be_chosen() -> None:
    with pytest.raises(ct.InvalidInput, match="average can be chosen for a Sample only"):
        describe(Profile(falling(), average="rms"), average="log")


def test_output_is_complete_and_json() -> None:
    shape = describe(sample(np.log10(falling()) + noise(6, L, 0.1), label="mine"))
    data = json.loads(json.dumps(shape.to_dict(), allow_nan=False))
    assert data["verdict"]["words"] == "primacy + last-token spike"
    assert len(data["readings"]) == len(INDICES)
    table = shape.table()
    for name, value, _ in shape.rows()[1:]:
        assert name in table
        assert value in table
    assert all(line in table for line in shape.verdict.evidence)
    assert "mine: primacy + last-token spike" in shape.words()
    assert "95 % over 6 sequences" in shape.words()
    with pytest.raises(ct.InvalidInput, match="Did you mean 'argmin'"):
        shape["argmn"]


def test_same_input_same_shape() -> None:
    s = sample(np.log10(falling()) + noise(6, L, 0.1))
    assert describe(s).to_dict() == describe(s).to_dict()


def test_long_sample_is_quick_and_small(recwarn: pytest.WarningsRecorder) -> None:
    describe(sample(noise(8, 8192, 0.1)))
    assert not recwarn.list


def test_numbers_are_printed_with_three_digits() -> None:
    assert [number(v) for v in (1829.3, 10.52, 0.03049, 14210.0, 0.00012, 0.0, -0.5)] == [
        "1829", "10.5", "0.0305", "1.42e+04", "1.20e-04", "0", "-0.5"
    ]
    with pytest.raises(AssertionError, match="without a reason"):
        Reading("x", math.nan, "nothing")
