"""What a prediction costs decides how it is made, and a prediction that would take minutes is refused in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import qwen2_like
from catenary.architecture import Alibi, Architecture, HeadGroup, pre_norm
from catenary.errors import InvalidInput, NotApplicable
from catenary.protocols import TokenLaw
from catenary.theory import birth_law
from catenary.theory.birth import check_exact_memory, exact_memory, head_groups
from catenary.theory.birth_law import BirthLaw
from catenary.theory.coarse import coarse_energies
from catenary.theory.cost import coarse_seconds, exact_seconds, has_state_space, passes
from catenary.theory.positions.portions import merged

SLOPES = tuple(HeadGroup(1, Alibi(2 ** (-8 * k / 32))) for k in range(1, 33))


def sloped(depth: int) -> Architecture:
    architecture = qwen2_like(depth=1)
    old = architecture.layers[0]
    layer = pre_norm(replace(old.attention, groups=SLOPES), old.feed_forward, old.norm)
    return replace(architecture, layers=(layer,) * depth)


def test_every_head_group_of_every_layer_counts() -> None:
    assert passes(qwen2_like(depth=24)) == 24
    assert passes(sloped(24)) == 24 * 32
    assert passes(sloped(24), merged) == 24 * 10
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


def test_state_spaces_are_solved_by_position_where_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    from catenary.configs.read import read_config
    from families.tiny import TINY

    monkeypatch.setattr(birth_law, "EXACT_SECONDS", 0.0)
    hybrid = read_config({**TINY["falcon_h1"].config, "model_type": "falcon_h1"})
    assert has_state_space(hybrid)
    assert not has_state_space(qwen2_like(depth=2))
    methods = [
        BirthLaw().predict(architecture, 24, TokenLaw(), {}).provenance["options"]["method"]
        for architecture in (hybrid, qwen2_like(depth=2))
    ]
    assert methods == ["exact", "coarse"]
