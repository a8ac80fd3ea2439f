"""What a prediction costs decides how it is made, and a prediction that would take minutes is refused in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import catenary as ct
from builders import qwen2_like
from catenary.architecture import Alibi, Architecture, HeadGroup, pre_norm
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable
from catenary.protocols import TokenLaw
from catenary.theory import birth_law
from catenary.theory.birth import check_exact_memory, exact_memory, head_groups
from catenary.theory.birth_law import BirthLaw
from catenary.theory.coarse import coarse_energies
from catenary.theory.cost import (
    COARSE_DECAY,
    COARSE_STREAMS,
    COARSE_UNIT,
    EXACT_DECAY,
    EXACT_STREAMS,
    EXACT_UNIT,
    FIXED,
    affordable_groups,
    check_coarse_cost,
    coarse_seconds,
    exact_seconds,
    passes,
    states,
)
from catenary.theory.positions.pairs import Pairs
from catenary.theory.positions.portions import each, merged
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.streams import Stream
from families.tiny import TINY

SLOPES = tuple(HeadGroup(1, Alibi(2 ** (-8 * k / 32))) for k in range(1, 33))


def sloped(depth: int) -> Architecture:
    architecture = qwen2_like(depth=1)
    old = architecture.layers[0]
    layer = pre_norm(replace(old.attention, groups=SLOPES), old.feed_forward, old.norm)
    return replace(architecture, layers=(layer,) * depth)


def test_every_head_group_of_every_layer_counts() -> None:
    assert passes(qwen2_like(depth=24)) == 24
    assert passes(sloped(24)) == 24 * 32
    assert passes(sloped(24), merged) == 24 * 9
    assert exact_seconds(sloped(24), 512) == pytest.approx(32 * exact_seconds(qwen2_like(depth=24), 512))
    assert coarse_seconds(qwen2_like(depth=3), 200) == pytest.approx(4 * coarse_seconds(qwen2_like(depth=3), 100))


def test_memory_counts_head_groups() -> None:
    assert head_groups(sloped(2)) == 32
    assert exact_memory(512, 24, 32) > 5 * exact_memory(512, 24)
    check_exact_memory(2048, 24)
    with pytest.raises(InvalidInput, match="method='coarse'"):
        check_exact_memory(3000, 24, 32)


@pytest.mark.parametrize(("name", "method"), [("few kernels", "exact"), ("many kernels", "coarse")])
def test_auto_is_exact_where_that_is_quick(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(birth_law, "EXACT_SECONDS", 0.1)
    architecture = qwen2_like(depth=2) if name == "few kernels" else sloped(1)
    profile = BirthLaw().predict(architecture, 150, TokenLaw(), {"coupling": "uniform"})
    assert profile.provenance["options"]["method"] == method


def test_ten_thousand_layers_are_refused_before_anything_is_computed() -> None:
    with pytest.raises(NotApplicable, match=r"would take about \d+ s, more than 60; use a shorter length"):
        coarse_energies(qwen2_like(depth=10_000), 1_000_000)


@pytest.mark.parametrize("depth", [1, 100, 10_000])
def test_affordable_groups_are_the_most_that_are_not_refused(depth: int) -> None:
    architecture = qwen2_like(depth=depth)
    most = affordable_groups(architecture)
    check_coarse_cost(architecture, most, 10**6)
    with pytest.raises(NotApplicable, match="more than 60"):
        check_coarse_cost(architecture, most + 1, 10**6)


def described(name: str) -> Architecture:
    return read_config({**TINY[name].config, "model_type": name})


@pytest.mark.parametrize(("name", "method"), [("bamba", "exact"), ("minimax", "exact"), ("bamba", "coarse")])
def test_what_decays_cost_is_what_is_done(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every decay two states forward and two backward, of every layer four streams, on the pairs of the estimate."""
    done: Counter[str] = Counter()
    pairs: set[int] = set()

    def count(owner: type, method: str) -> None:
        original = getattr(owner, method)

        def counted(self: object, x: Pairs, *rest: Pairs) -> object:
            done[method + owner.__name__] += 1
            pairs.add(x.same.size)
            return original(self, x, *rest)

        monkeypatch.setattr(owner, method, counted)

    count(Memory, "state")
    count(Memory, "adjoint_state")
    count(Stream, "forward")
    architecture = described(name)
    ct.predict(architecture, length=250, method=method, finite_width=False)
    found = states(architecture)
    assert done["stateMemory"] == done["adjoint_stateMemory"] == 2 * found.decays
    assert done["forwardStream"] == 4 * found.layers
    assert found.work == pytest.approx(found.decays * (FIXED if name == "minimax" else 1))
    (groups,) = pairs
    beside = passes(architecture, merged if method == "coarse" else each)
    seconds, units = (
        (coarse_seconds(architecture, groups), (COARSE_UNIT, COARSE_STREAMS, COARSE_DECAY))
        if method == "coarse"
        else (exact_seconds(architecture, groups), (EXACT_UNIT, EXACT_STREAMS, EXACT_DECAY))
    )
    each_costs = units[0] * beside + units[1] * done["forwardStream"] / 4 + units[2] * found.work
    assert seconds == pytest.approx(each_costs * groups**2)


def test_decays_decide_the_method_and_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many layers of state spaces on groups, few by position; too many are refused in words that name the decays."""
    hybrid = described("bamba")
    deep = replace(hybrid, layers=hybrid.layers * 3)
    assert exact_seconds(hybrid, 512) < birth_law.EXACT_SECONDS < exact_seconds(deep, 512)
    assert exact_seconds(deep, 512) > 3 * EXACT_UNIT * passes(deep) * 512**2
    profile = BirthLaw().predict(deep, 512, TokenLaw(), {"coupling": "uniform"})
    assert profile.provenance["options"]["method"] == "coarse"
    with pytest.raises(NotApplicable, match=r"mean kernels and \d+ decays of states on \d+ groups .* more than 60"):
        coarse_energies(replace(hybrid, layers=hybrid.layers * 500), 300)


def test_memory_counts_decays() -> None:
    assert head_groups(described("bamba")) == 4
    assert head_groups(described("minimax")) == 5
    with pytest.raises(InvalidInput, match="method='coarse'"):
        check_exact_memory(6500, 6, head_groups(described("bamba")))
