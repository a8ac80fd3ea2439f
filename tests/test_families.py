"""The contract of every model type that transformers can build a causal language model of."""

from __future__ import annotations

from pathlib import Path

import pytest

from catenary.configs.class_facts import causal_types
from catenary.configs.family import FAMILIES
from catenary.configs.refusals import REFUSALS
from catenary.configs.standing import measured_errors, standing, standing_words
from catenary.errors import InvalidInput
from families.contract import verify
from families.table import page
from families.tiny import TINY, type_of

transformers = pytest.importorskip("transformers")

NETWORKS = 12
"""Of each type; the table has the errors of 32 (`scripts/verify_families.py`)."""

VERIFIED = 0.05
"""Largest median |log10 predicted/measured| of a verified type."""


def test_every_causal_type_of_the_installed_transformers_has_one_standing() -> None:
    """A newer transformers with another type fails here by its name."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    assert set(causal_types()) == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert not set(FAMILIES) & set(REFUSALS)
    for model_type in causal_types():
        found = standing(model_type)
        assert (found.kind == "verified") is (found.reason == "")
    with pytest.raises(InvalidInput, match="unknown model_type 'qwen9'"):
        standing("qwen9")


def test_every_described_type_is_measured() -> None:
    described = {kind for kind in causal_types() if standing(kind).kind != "refused"}
    assert {type_of(name) for name in TINY} == described
    assert set(measured_errors()) == set(TINY)
    for name, row in measured_errors().items():
        assert row["feature"] == TINY[name].feature, name
        if standing(type_of(name)).kind == "verified":
            assert row["median"] <= VERIFIED, name
            assert row.get("plain", 1) > 0.1, name


def test_page_is_up_to_date() -> None:
    """Otherwise: python scripts/verify_families.py --docs."""
    assert Path("docs/families.md").read_text("utf-8") == page()


@pytest.mark.parametrize("name", list(TINY))
def test_law_holds_in_real_networks(name: str) -> None:
    """Median |log10 predicted/measured| over position groups; the plain law fails where the type's feature acts."""
    case = TINY[name]
    found = verify(name, case, networks=NETWORKS)
    if standing(type_of(name)).kind == "verified":
        assert found.median <= VERIFIED, found
        assert not case.feature or found.plain > 0.1, found
    else:
        assert found.median <= measured_errors()[name]["median"] + 3 * found.floor, found


def test_a_type_that_no_network_was_held_against_is_not_called_verified() -> None:
    assert standing_words("llama").startswith("Model type llama: verified, median error")
    assert "kimi_k2" not in measured_errors()
    assert standing_words("kimi_k2") == "Model type kimi_k2: derived; networks of this very type were not measured."
