"""Repeated tokens against real untrained networks: absolute values per class of tokens, nothing fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.text.windows import Windows
from catenary.theory.birth import exact_energies
from catenary.theory.embedding import embedded
from catenary.theory.repeats.law import repeated_energies
from families.case import DENSE
from families.experts import EXPERT_CASES
from families.latent import LATENT_CASES

pytestmark = pytest.mark.slow

CONFIG: dict[str, Any] = {
    "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 4,
    "intermediate_size": 1390, "vocab_size": 16, "rope_theta": 1e5, "bos_token_id": 0, "eos_token_id": 0,
    "pad_token_id": None,
}
LENGTH = 128


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "llama", "initializer_range": 0.0625},
        {"model_type": "qwen2", "initializer_range": 0.08},
        {"model_type": "mistral", "initializer_range": 0.0625, "sliding_window": 48, "head_dim": 64},
    ],
    ids=["v1", "v2.7", "v1 window"],
)
def test_classes_and_last_token(config: dict[str, Any]) -> None:
    check_classes({**CONFIG, **config}, LENGTH, networks=10, draws=16)


SMALL = 0.0884
"""Of every matrix at width 128, for the logit variance 1; .11 with latents, for .9."""


@pytest.mark.parametrize(
    "config",
    [
        {**EXPERT_CASES["gpt_oss"].config, "model_type": "gpt_oss", "initializer_range": SMALL, "sliding_window": 24},
        {**EXPERT_CASES["llama4_text"].config, "model_type": "llama4_text", "initializer_range": SMALL,
         "attention_chunk_size": 32},
        {**DENSE, "model_type": "gemma2", "initializer_range": SMALL, "head_dim": 32, "query_pre_attn_scalar": 32,
         "sliding_window": 32, "attn_logit_softcapping": 3.0},
        {**LATENT_CASES["minicpm3"].config, "model_type": "minicpm3", "initializer_range": 0.11},
    ],
    ids=["sinks", "chunks", "soft-cap", "latents"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*constant. a dead")
def test_other_attention(config: dict[str, Any]) -> None:
    check_classes(config, 96, networks=6, draws=8)


def check_classes(config: dict[str, Any], length: int, networks: int, draws: int) -> None:
    """Every class of tokens within .06 dex and the last token within .04, beside the error of the measurement."""
    weights = 1 / np.arange(1, 601)
    ids = np.random.default_rng(41).choice(600, length, p=weights / weights.sum())
    per_network = []
    for seed in range(networks):
        windows = Windows(np.tile(ids, (draws, 1)), "given", "gaussian", 100 + seed)
        sample = ct.measure_jacobian(ct.load(config, seed=seed), windows, probes=1, seed=seed, batch_size=8)
        per_network.append(sample.energy[0, 0, 0].mean((0, 1)))
    measured = np.array(per_network)
    architecture = ct.read_config(config)
    law = architecture.width * repeated_energies(architecture, ids)
    equal = (ids[:, None] == ids).astype(float)
    strong = architecture.width * exact_energies(architecture, embedded(architecture, equal))
    counts, body = np.bincount(ids)[ids], np.arange(length) < length - 1

    def errors(chosen: np.ndarray) -> tuple[float, float, float]:
        """Of the law, of the strong coupling, and the standard error of the measurement, in dex."""
        seen = measured[:, chosen].mean(1)
        spread = seen.std(ddof=1) / np.sqrt(len(seen)) / seen.mean() / (2 * np.log(10))
        level = 0.5 * np.log10(seen.mean())
        return (*(0.5 * np.log10(p[chosen].mean()) - level for p in (law, strong)), spread)

    for name, chosen in {"once": counts == 1, "2-5": (counts > 1) & (counts < 6), "more": counts > 5}.items():
        found = errors(body & chosen)
        print(name, *(f"{x:+.3f}" for x in found))
        assert abs(found[0]) < 0.06 + 2 * found[2]
    found = errors(~body)
    print("last", *(f"{x:+.3f}" for x in found))
    assert abs(found[0]) < 0.04 + 2 * found[2]
