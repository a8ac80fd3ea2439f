"""Windows until a target error: the interval is Student's, the stop depends on the numbers alone, and it covers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from catenary.blocks import Blocks
from catenary.errors import InvalidInput
from catenary.sample import Sample
from catenary.study import adaptive
from catenary.study.adaptive import block_error, looks, measure_until
from catenary.study.config import study_config
from catenary.study.observer import Silent
from catenary.study.parts import Part

LENGTH = 64


def drawn(count: int, seed: int, scatter: float = 0.2) -> Sample:
    """Windows whose blocks scatter by ``scatter`` in ln, each block as a whole."""
    edges = Blocks(LENGTH).edges
    noise = np.random.default_rng(seed).normal(0, scatter, (4 * count, len(edges) - 1))[:count]
    norms = np.ones((count, LENGTH))
    for k, (start, stop) in enumerate(pairwise(edges)):
        norms[:, start:stop] = np.exp(noise[:, k : k + 1])
    return Sample((norms**2)[None, None, None, :, None], ("vanilla",))


def test_the_error_is_half_of_students_interval_of_the_widest_block() -> None:
    sample = drawn(12, 0)
    edges = Blocks(LENGTH).edges
    halves = []
    for start in edges[:-1]:
        logs = 0.5 * np.log(sample.energy[0, 0, 0, :, 0, start])
        low, high = stats.t.interval(0.95, 11, loc=logs.mean(), scale=stats.sem(logs))
        halves.append((high - low) / 2)
    assert block_error(sample) == pytest.approx(max(halves), rel=1e-12)


def test_looks_grow_and_end_at_the_most() -> None:
    assert looks(60) == [8, 12, 18, 27, 41, 60]
    assert looks(5) == [5]
    assert looks(30, batch=8) == [8, 16, 24, 30]


def test_the_interval_at_the_stop_still_covers() -> None:
    """Coverage of each block's true log-mean, 0, when one stops at the first look below the target."""
    target, hits, stopped = 0.12, [], []
    for seed in range(300):
        sample = drawn(60, seed)
        rows = 0.5 * np.log(sample.energy[0, 0, 0, :, 0, Blocks(LENGTH).edges[:-1]]).T
        for count in looks(60):
            half = stats.t.ppf(0.975, count - 1) * rows[:count].std(axis=0, ddof=1) / np.sqrt(count)
            if half.max() <= target:
                break
        stopped.append(count)
        hits.append(np.abs(rows[:count].mean(axis=0)) <= half)
    assert len(set(stopped)) > 1, "the stop is tested only if it varies"
    assert 0.92 <= np.mean(hits) <= 0.97  # 900 numbers, three to a run: one standard error is .008 to .013


def run(monkeypatch: pytest.MonkeyPatch, target: float, most: int = 60) -> adaptive.Adapted:
    whole = drawn(60, 3)

    def measure(config: Any, source: Any, part: Part, *rest: Any, **named: Any) -> Sample:
        return Sample(whole.energy[:, :, :, : part.windows], ("vanilla",))

    monkeypatch.setattr(adaptive, "measure_part", measure)
    config = study_config({"model": "preset:toy", "length": LENGTH})
    part = Part("trained", "trained", "pretrained", ("vanilla",), 1, most, 1)
    source: Any = None
    return measure_until(config, source, part, {}, Path("."), Silent(), target_error=target)


def test_it_stops_at_the_first_look_that_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {count: block_error(drawn(60, 3)._replace(drawn(60, 3).energy[:, :, :, :count])) for count in looks(60)}
    found = run(monkeypatch, 0.12)
    assert found.reached
    assert found.part.windows == next(count for count, error in errors.items() if error <= 0.12)
    assert found.error == errors[found.part.windows]
    assert found.sample.sequences == found.part.windows


def test_a_target_out_of_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, 0.001)
    assert not found.reached
    assert found.part.windows == 60
    assert f"not 0.1%: give about --windows {found.wanted}" in found.words
    assert found.wanted == pytest.approx(60 * (found.error / 0.001) ** 2, abs=1)
    with pytest.raises(InvalidInput, match="target_error must be in"):
        run(monkeypatch, 1.5)
    with pytest.raises(InvalidInput, match="windows must be >= 2"):
        run(monkeypatch, 0.1, most=1)
