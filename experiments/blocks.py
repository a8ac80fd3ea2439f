"""Windows, ALiBi, parallel branches and sandwich norms against untrained networks: absolute values, nothing fitted.

Prints, per family, W1, the median and largest |log10 predicted / measured|, and the same for a plain pre-norm decoder
with full causal attention (``plain``), which shows that the families' own features are what is tested.
Run: python experiments/blocks.py [networks] [probes]   (3 and 2 unless said otherwise; about three minutes)
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import catenary as ct
from catenary.architecture import Architecture, Branch, Causal, HeadGroup, Layer, Step

LENGTH, WIDTH, LAYERS, HEADS = 256, 512, 12, 8
STD = 0.02 * (896 / WIDTH) ** 0.5
COMMON: dict[str, Any] = {
    "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "initializer_range": STD,
    "vocab_size": 16, "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "mistral": {**COMMON, "num_key_value_heads": 2, "intermediate_size": 1408, "sliding_window": 64, "head_dim": 64},
    "bloom": {**COMMON, "n_layer": LAYERS, "n_head": HEADS},
    "gpt_neox": {**COMMON, "intermediate_size": 4 * WIDTH, "rotary_pct": 0.25},
    "gemma2": {
        **COMMON, "num_key_value_heads": 2, "intermediate_size": 1408, "sliding_window": 64, "head_dim": 64,
        "query_pre_attn_scalar": 64,
    },
}  # fmt: skip


def plain(architecture: Architecture) -> Architecture:
    """The same sizes as a pre-norm sequential decoder with full causal attention and nothing behind the embedding."""
    norm = architecture.final_norm

    def changed(layer: Layer) -> Layer:
        attention, network = layer.attention, layer.feed_forward
        attention = replace(attention, groups=(HeadGroup(attention.heads, Causal()),), softcap=None)
        return Layer(tuple(Step((Branch(mix, before=norm),)) for mix in (attention, network)))

    layers = tuple(map(changed, architecture.layers))
    return replace(architecture, layers=layers, embedding=replace(architecture.embedding, norm=None))


def main(networks: int, probes: int) -> None:
    """One table."""
    windows = ct.random_windows(LENGTH, 1, 0)
    for kind, fields in CONFIGS.items():
        config = {"model_type": kind, **fields}
        energies = []
        for seed in range(networks):
            model = ct.load(config, seed=seed, vocabulary=16)
            energies.append(ct.measure_jacobian(model, windows, probes=probes, seed=seed).energy.reshape(-1, LENGTH))
        seen = np.sqrt(np.concatenate(energies).mean(0))
        architecture = ct.read_config(config)
        for name, law in (("law", architecture), ("plain", plain(architecture))):
            values = ct.predict(law, length=LENGTH).values
            errors = np.abs(np.log10(values / seen))
            shares = np.cumsum(values / values.sum()) - np.cumsum(seen / seen.sum())
            print(
                f"{kind:9s} {name:5s} W1 {np.abs(shares).mean():.4f}  |log10| median {np.median(errors):.3f} "
                f"max {errors.max():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*rope.*")
    main(*(int(word) for word in (sys.argv[1:] or ("3", "2"))))
