"""What is read off a profile over steps: planted changes are found, noise is not, and every number by another route."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from catenary.boundaries import boundary_effect
from catenary.errors import InvalidInput
from catenary.evolution import Evolution, follow_training
from catenary.page.evolve import evolve_exhibit
from catenary.page.evolve_words import sentences
from catenary.page.exhibit import write_exhibit
from catenary.sample import Sample
from catenary.shape import describe

LENGTH, CHUNK, STEPS = 64, 16, (0, 10, 20)


def sample(log10: np.ndarray, conditions: tuple[str, ...] = ("vanilla",), steps: tuple[int, ...] = STEPS) -> Sample:
    """From log10 profiles (condition, step, sequence, position)."""
    energy = (10.0 ** (2 * log10))[:, :, None, :, None]
    return Sample(energy, conditions, steps, label="planted")


def valley(depth: float, lift: float = 0.0) -> np.ndarray:
    """log10 of a U with a flat floor at ``lift`` between x = .4 and .6, ``depth`` below its ends."""
    x = (np.arange(LENGTH) + 0.5) / LENGTH
    return lift + depth * (np.maximum(np.abs(2 * x - 1) - 0.2, 0) / 0.8) ** 2


def planted(*curves: np.ndarray, noise: float = 0.02, sequences: int = 8, seed: int = 0) -> np.ndarray:
    """(1, step, sequence, position): each sequence has its own scatter, the same at every step but for a fifth."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, noise, (sequences, LENGTH))
    return np.stack([c + own + rng.normal(0, noise / 5, own.shape) for c in curves])[None]


def test_numbers_are_those_of_a_shape() -> None:
    """``describe`` gives the same numbers, and intervals about as wide, of a Sample of one step."""
    found = follow_training(sample(planted(valley(0.3), valley(0.5), valley(0.8))))
    for k, step in enumerate(STEPS):
        part = sample(planted(valley(0.3), valley(0.5), valley(0.8))).select(step=step)
        shape = describe(part, average="log")
        for name, other in (("peak/trough", "depth"), ("first/mid",) * 2, ("last/mid",) * 2, ("mid",) * 2):
            trace = found.trace("vanilla", other)
            assert trace is not None
            assert trace.low is not None
            assert trace.high is not None
            reading = shape[name]
            assert trace.values[k] == pytest.approx(reading.value, rel=1e-9), name
            assert reading.low is not None
            assert reading.high is not None
            assert np.log(trace.high[k] / trace.low[k]) == pytest.approx(np.log(reading.high / reading.low), rel=0.15)
        assert found.troughs["vanilla"][k] == pytest.approx(shape["argmin"].value)


def test_a_valley_that_deepens_on_a_floor_that_stays() -> None:
    found = follow_training(sample(planted(valley(0.3), valley(0.5), valley(0.8))))
    depth, floor = found.trace("vanilla", "depth"), found.trace("vanilla", "floor")
    assert depth is not None
    assert floor is not None
    middle = valley(0.8)[1:-1]
    blocks = [part.mean() for part in np.array_split(middle, 3)]
    grown = (0.5 / 0.8) * (max(blocks) - min(blocks))
    assert depth.change.value == pytest.approx(grown, abs=0.02)
    assert depth.change.low is not None
    assert depth.change.low > 0
    assert depth.highest_step == 20
    said = sentences(found)
    assert said[0].startswith("The valley deepens")
    assert "The middle does not rise" in said[2]
    shallow = sentences(follow_training(sample(planted(valley(0.8), valley(0.5), valley(0.3)))))
    assert shallow[0].startswith("The valley becomes shallower")


def test_a_floor_that_rises_for_a_while_is_seen() -> None:
    curves = planted(valley(0.5), valley(0.5, lift=0.2), valley(0.5, lift=-0.1))
    found = follow_training(sample(curves))
    mid = found.trace("vanilla", "mid")
    assert mid is not None
    assert mid.highest_step == 10
    assert mid.highest.value == pytest.approx(0.2, abs=0.01)
    assert "The middle rises: +0.2" in sentences(found)[2]
    share = found.trace("vanilla", "floor share")
    assert share is not None
    assert abs(share.change.value) < 0.01, "a factor on the whole profile is no share"


def test_changes_are_paired_by_sequence() -> None:
    """Sequences that lie far apart, each .05 dex higher in the end: the change is known far better than the level."""
    rng = np.random.default_rng(4)
    levels = rng.normal(0, 0.3, (8, 1)) + rng.normal(0, 0.01, (2, 8, LENGTH))
    curves = np.stack([valley(0.3) + levels[0], valley(0.3, lift=0.05) + levels[1]])[None]
    mid = follow_training(sample(curves, steps=(0, 1))).trace("vanilla", "mid")
    assert mid is not None
    assert mid.low is not None
    assert mid.high is not None
    assert np.log10(mid.high[0] / mid.low[0]) > 0.2
    for reading in (mid.change, mid.highest):
        assert reading.low is not None
        assert reading.high is not None
        assert reading.value == pytest.approx(0.05, abs=0.01)
        assert reading.high - reading.low < 0.03


def test_noise_alone_rarely_rises_at_any_of_many_steps() -> None:
    """The simultaneous interval: 5 % of 60 runs without any change; single-step intervals would give far more."""
    rng = np.random.default_rng(0)
    steps = tuple(range(8))
    rose = once = 0
    for run in range(60):
        curves = valley(0.3) + rng.normal(0, 0.05, (1, 8, 10, LENGTH))
        found = follow_training(sample(curves, steps=steps), seed=run)
        mid = found.trace("vanilla", "mid")
        assert mid is not None
        assert mid.highest.low is not None
        rose += mid.highest.low > 0
        gaps = np.log10(mid.values / mid.values[0])
        rows = curves[0, :, :, 29:35].mean(axis=2)
        error = (rows - rows[0]).std(axis=1, ddof=1) / np.sqrt(10)
        once += bool((gaps > 2.26 * error + 1e-12).any())
    assert rose <= 7, rose  # 2.5 % to 5 % expected; more than 7 of 60 has probability .01 at 5 %
    assert once > 2 * rose


def test_smear_is_the_end_over_as_much_before() -> None:
    flat = np.zeros(LENGTH)
    flat[:45] = 1.0  # what stands before both stretches counts for nothing
    curve = flat.copy()
    curve[-10:-1] = 0.4  # about the last 15 % of 64 tokens, without the last
    curve[-1] = 2.0
    found = follow_training(sample(planted(flat, flat, curve)))
    fifteen = found.trace("vanilla", "smear 15%")
    assert fifteen is not None
    assert fifteen.values[0] == pytest.approx(1, abs=0.02)
    assert fifteen.change.value == pytest.approx(0.4, abs=0.02)
    assert "gains on the 15 % before" in sentences(found)[3]


def test_joins_are_those_of_boundary_effect() -> None:
    spiky = np.zeros(LENGTH)
    spiky[[16, 32, 48]] = 0.3
    both = np.concatenate([
        planted(np.zeros(LENGTH), np.zeros(LENGTH), np.zeros(LENGTH)),
        planted(np.zeros(LENGTH), spiky / 2, spiky, seed=1),
    ])
    measured = sample(both, ("vanilla", "chunked"))
    found = follow_training(measured, CHUNK)
    trace = found.trace("chunked", "boundary")
    assert trace is not None
    for k, step in enumerate(STEPS):
        part = measured.select("chunked", step)
        effect = boundary_effect(part, CHUNK)
        assert trace.values[k] == pytest.approx(effect["boundary ratio"].value, rel=1e-9)
    assert trace.values[-1] == pytest.approx(10**0.3, rel=0.05)
    assert "Spikes at joins appear" in sentences(found)[4]
    control = found.trace("vanilla", "boundary")
    assert control is not None
    assert control.values[-1] == pytest.approx(1, abs=0.06)
    none = follow_training(sample(both, ("chunked", "vanilla")), CHUNK)
    assert "Spikes at joins do not appear" in sentences(none)[4]


def test_what_cannot_be_followed_is_refused() -> None:
    curves = planted(valley(0.3), valley(0.3), valley(0.3))
    with pytest.raises(InvalidInput, match="steps must ascend"):
        follow_training(sample(curves, steps=(0, 20, 10)))
    with pytest.raises(InvalidInput, match="must hold one network"):
        follow_training(Sample(np.ones((1, 1, 2, 3, 1, 16)), ("vanilla",)))
    zero = np.ones((1, 1, 1, 3, 1, 16))
    zero[..., 4] = 0
    with pytest.raises(InvalidInput, match="every energy > 0"):
        follow_training(Sample(zero, ("vanilla",)))


def test_one_sequence_or_one_step_has_no_interval_or_change() -> None:
    alone = follow_training(sample(planted(valley(0.3), valley(0.5), valley(0.8), sequences=1)))
    depth = alone.trace("vanilla", "depth")
    assert depth is not None
    assert depth.low is None
    assert depth.change.low is None
    assert "(no interval)" in sentences(alone)[0]
    assert "without an interval" in sentences(alone)[2]
    still = follow_training(sample(planted(valley(0.3)), steps=(7,)))
    mid = still.trace("vanilla", "mid")
    assert mid is not None
    assert mid.change.value == 0
    assert mid.highest_step == 7


def test_the_page_holds_all_of_it(tmp_path: Path) -> None:
    both = np.concatenate([planted(valley(0.3), valley(0.5), valley(0.8)), planted(*[valley(0.3)] * 3, seed=2)])
    measured = sample(both, ("vanilla", "chunked"))
    found: Evolution = follow_training(measured, CHUNK)
    losses = list(np.linspace(9, 6, 20))
    exhibit = evolve_exhibit(measured, found, losses, {"length": LENGTH})
    assert [p.name for p in exhibit.plates] == [
        "map-vanilla", "map-chunked", "valley", "floor", "smear", "joins", "loss"
    ]  # fmt: skip
    assert len(exhibit.data) == 3 * len(found.traces) + 20
    page = write_exhibit(exhibit, tmp_path).read_text(encoding="utf-8")
    assert "The valley deepens" in page
    assert "another run of the training is another network" in page
    quiet = evolve_exhibit(measured, found, [], {})
    assert "loss" not in [p.name for p in quiet.plates]
