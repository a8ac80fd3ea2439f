"""Attention by blocks of queries: the numbers of the whole mask, and memory linear in the length."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.measure import passes
from catenary.measure.kept import keeping
from catenary.models.anatomy import pilot_vectors
from catenary.models.banded import banded
from catenary.models.undisturbed import undisturbed
from families.tiny import TINY as DESCRIBED
from families.tiny import type_of
from tiny_models import TINY

WINDOWED = {**TINY["mistral"], "sliding_window": 8, "max_position_embeddings": 512}
SEVERAL = ["gemma3_text", "olmo3", "cohere2", "llama4_text", "exaone4", "gpt_neo"]


def kept_bytes(config: dict[str, object], length: int, *, blocks: bool) -> int:
    model = ct.load(config)
    vectors = pilot_vectors(model.anatomy.embedding, length).requires_grad_(True)
    mask = torch.ones((1, length), dtype=torch.long)
    with undisturbed(model.module), keeping(model.module) as kept, banded() if blocks else nullcontext():
        model.anatomy.stream(vectors.clone(), mask)
    return kept.bytes


def energies(config: dict[str, object], length: int, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """By blocks, and with the whole mask."""
    model = ct.load(config, vocabulary=16)
    windows = ct.random_windows(length, 2, 0)
    by_blocks = ct.measure_jacobian(model, windows, probes=2, batch_size=2).energy
    monkeypatch.setattr(passes, "banded", nullcontext)
    return [by_blocks, ct.measure_jacobian(model, windows, probes=2, batch_size=2).energy]


@pytest.mark.parametrize("length", [16, 17, 40, 61])
def test_blocks_give_the_numbers_of_the_whole_mask(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_blocks, whole = energies(WINDOWED, length, monkeypatch)
    assert np.allclose(by_blocks, whole, rtol=1e-5, atol=0)
    assert ((by_blocks > 0) == (whole > 0)).all()
    assert (by_blocks[..., : length - 1 - 2 * 7] == 0).all()  # two layers reach 7 tokens back each


@pytest.mark.parametrize("name", [name for name in DESCRIBED if name in SEVERAL])
@pytest.mark.filterwarnings("ignore:.*constant")
def test_other_windowed_and_chunked_types_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**DESCRIBED[name].config, "model_type": type_of(name)}
    by_blocks, whole = energies(config, 96, monkeypatch)
    assert np.allclose(by_blocks, whole, rtol=1e-4, atol=0)


def test_what_is_kept_grows_with_the_length_and_not_with_its_square() -> None:
    by_blocks = [kept_bytes(WINDOWED, length, blocks=True) for length in (128, 256)]
    whole = [kept_bytes(WINDOWED, length, blocks=False) for length in (128, 256)]
    assert by_blocks[1] == pytest.approx(2 * by_blocks[0], rel=0.05)
    assert whole[1] - 2 * whole[0] > 256**2 / 2 - 1  # a mask of one byte a pair
    assert by_blocks[1] < whole[1]


def test_interfaces_are_put_back() -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    before = ALL_MASK_ATTENTION_FUNCTIONS["sdpa"], ALL_ATTENTION_FUNCTIONS["sdpa"]

    def fail_inside() -> None:
        with banded():
            assert ALL_ATTENTION_FUNCTIONS["sdpa"] is not before[1]
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        fail_inside()
    assert (ALL_MASK_ATTENTION_FUNCTIONS["sdpa"], ALL_ATTENTION_FUNCTIONS["sdpa"]) == before


def test_padded_batches_keep_the_whole_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ct.load(WINDOWED)
    ids = np.random.default_rng(0).integers(1, 50, (1, 40))
    plain = ct.measure_jacobian(model, ids, probes=1).energy
    padded = np.concatenate([np.zeros((1, 5), dtype=np.int64), ids], axis=1)
    mask = np.concatenate([np.zeros((1, 5), dtype=np.int64), np.ones_like(ids)], axis=1)
    moved = ct.measure_jacobian(model, padded, probes=1, attention_mask=mask).energy
    assert np.allclose(plain, moved, rtol=1e-5, atol=0)
