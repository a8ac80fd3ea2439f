"""Output matrices scaled by depth, or no longer: the weights, the architecture that stands for them, and the study."""

from __future__ import annotations

import math

import numpy as np
import pytest

import catenary as ct
import catenary.reproduce.studies
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.studies.output_scale import scale_outputs, with_outputs
from catenary.study.observer import Silent

WIDTH = 96
QWEN = {"model_type": "qwen2", "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 256, "vocab_size": 64, "initializer_range": 0.06,
        "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_embd": WIDTH, "n_layer": 2, "n_head": 2, "vocab_size": 64, "n_positions": 128,
        "initializer_range": 0.06, "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip


def outputs(architecture: ct.Architecture) -> list[float]:
    return [branch.mix.output_std for layer in architecture.layers for step in layer.steps for branch in step.branches]


def test_one_models_scale_is_the_others() -> None:
    """Scaled, Qwen2 has the std GPT-2 draws; no longer scaled, GPT-2 has one std for all matrices, as Qwen2."""
    qwen, gpt2 = ct.read_config(QWEN), ct.read_config(GPT2)
    assert outputs(with_outputs(qwen, 4**-0.5)) == pytest.approx(outputs(gpt2), rel=1e-12)
    assert outputs(with_outputs(gpt2, 4**0.5)) == pytest.approx([0.06] * 4, rel=1e-12)
    network = ct.load(GPT2, seed=1)
    scale_outputs(network, 2.0)
    for layer in network.anatomy.layers:
        for part in (layer.attn.c_proj, layer.mlp.c_proj, layer.attn.c_attn):
            assert float(part.weight.std()) == pytest.approx(0.06, rel=0.05)


@pytest.mark.parametrize(("config", "factor"), [(QWEN, 0.5), (GPT2, 2.0)])
def test_the_architecture_stands_for_the_scaled_network(config: dict[str, object], factor: float) -> None:
    """Its birth law is that of networks with scaled weights, and not that of networks as they are drawn."""
    length, curves = 48, []
    for seed in range(6):
        network = ct.load(config, seed=seed)
        scale_outputs(network, factor)
        windows = ct.random_windows(length, 2, seed)
        curves.append(ct.measure_jacobian(network, windows, probes=4, seed=seed).profile("rms").values)
    measured = np.log10(np.sqrt(np.mean(np.square(curves), axis=0)))

    def off(architecture: ct.Architecture) -> float:
        error = np.log10(ct.predict(architecture, length=length).values) - measured
        return float(np.abs(error - np.median(error)).max())

    architecture = ct.read_config(config)
    right, wrong = off(with_outputs(architecture, factor)), off(architecture)
    assert right < 0.12
    assert wrong > 2 * right


def test_the_study_reads_both_networks() -> None:
    settings = {"scaled": QWEN, "unscaled": GPT2, "length": 32, "windows": 2, "probes": 1, "seed": 0}
    found = STUDIES["output-scale"](settings, Silent())
    columns = dict(zip(found.fields, np.array(found.rows, float).T, strict=True))
    for name in ("qwen2, outputs scaled", "gpt2, outputs not scaled"):
        law = np.log10(columns[f"{name}: paper"] / columns[name])
        assert found[f"last token, paper, {name}"].value == pytest.approx(law[-1] - np.median(law), abs=1e-6)
    assert math.isfinite(found["W1, birth law, gpt2, outputs not scaled"].value)
