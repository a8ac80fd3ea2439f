"""Padding in front of a text never enters a profile: it is invisible, or the type is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.padding import INVISIBLE, padding_dependence
from families.measuring import apart, build, energies
from tiny_models import TINY

IDS = np.random.default_rng(0).integers(3, 16, (1, 10))


def padded(pads: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.concatenate([np.full((1, pads), 5), IDS], axis=1)
    mask = np.ones_like(ids)
    mask[:, :pads] = 0
    return ids, mask


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
@pytest.mark.parametrize("pads", [1, 7])
def test_pads_change_nothing(family: str, pads: int) -> None:
    model = ct.load(TINY[family])
    ids, mask = padded(pads)
    seen = energies(model, ids, method="exact", attention_mask=mask)
    assert apart(seen, energies(model, IDS, method="exact")) < 1e-5


@pytest.mark.parametrize("model_type", ["rwkv", "recurrent_gemma", "roberta", "bart"])
def test_types_that_see_padding_are_refused_and_only_where_there_is_some(model_type: str) -> None:
    model = build(model_type)
    ids, mask = padded(3)
    assert padding_dependence(model.module, model.anatomy) > 10 * INVISIBLE
    with pytest.raises(NotApplicable, match="sees padding in front of a text"):
        energies(model, ids, probes=1, attention_mask=mask)
    assert energies(model, IDS, probes=1, attention_mask=np.ones_like(IDS)).shape == (1, 1, 10)


def test_a_type_that_fails_on_padding_says_so_in_one_line() -> None:
    """XLNet adds a mask of one sequence in place to one of all."""
    ids, mask = padded(3)
    with pytest.raises(NotApplicable, match="cannot be run on padded windows"):
        energies(build("xlnet"), ids, probes=1, attention_mask=mask)
    assert energies(build("xlnet"), np.repeat(IDS, 2, axis=0), probes=1).shape == (2, 1, 10)
