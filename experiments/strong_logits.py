"""The strong coupling against untrained networks at large logit variance: Qwen2 at v = .85 and 2.7, and Qwen3.

Prints, per network type, the median |log10| over position groups, the last token's error and both standard errors.
Run: python experiments/strong_logits.py [networks] [sequences]   (16 and 6 unless said otherwise; about ten minutes)
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import catenary as ct

LENGTH, WIDTH, LAYERS = 256, 256, 12


def config(model_type: str, variance: float) -> dict[str, Any]:
    """A network of width 256 and 12 layers whose weights' std gives the logits ``variance`` (none with QK-norm)."""
    return {
        "model_type": model_type, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 64, "intermediate_size": 1390, "vocab_size": 16,
        "max_position_embeddings": 2 * LENGTH, "initializer_range": (variance**0.5 / WIDTH) ** 0.5,
        "bos_token_id": 0, "eos_token_id": 0,
    }  # fmt: skip


def edges(length: int) -> list[int]:
    """Eight single positions, groups growing by 1.25, and the last position by itself."""
    found = list(range(9))
    while found[-1] < length - 1:
        found.append(min(max(found[-1] + 1, round(1.25 * found[-1])), length - 1))
    return [*found, length]


def measured(config: dict[str, Any], networks: int, sequences: int) -> NDArray[np.float64]:
    """||J_j^T v||^2 of every network and position, averaged over sequences."""
    windows = ct.random_windows(LENGTH, sequences, 1)
    return np.stack([
        ct.measure_jacobian(ct.load(config, seed=seed), windows, probes=1, seed=seed, batch_size=sequences)
        .energy[0, 0, 0].mean((0, 1))
        for seed in range(networks)
    ])  # fmt: skip


def main(networks: int = 16, sequences: int = 6) -> None:
    """Measure and print all three."""
    cuts = list(pairwise(edges(LENGTH)))
    for model_type, variance, spread in (("qwen2", 0.85, 0.85), ("qwen2", 2.7, 2.7), ("qwen3", 1.0, 0.85)):
        settings = config(model_type, spread)
        energies = measured(settings, networks, sequences)
        grouped = np.stack([energies[:, a:b].mean(1) for a, b in cuts], 1)
        scatter = grouped.std(0, ddof=1) / networks**0.5 / grouped.mean(0) / (2 * np.log(10))
        for coupling in ("strong", "first-order"):
            law = ct.predict(ct.read_config(settings), length=LENGTH, coupling=coupling).values ** 2
            error = 0.5 * np.log10(np.array([law[a:b].mean() for a, b in cuts]) / grouped.mean(0))
            print(
                f"{model_type} v={variance:g} {coupling}: median {np.median(np.abs(error)):.3f} "
                f"(bias {np.median(error):+.3f}, se {np.median(scatter):.3f}), largest {np.abs(error).max():.3f}, "
                f"first {error[0]:+.3f} (se {scatter[0]:.3f}), last {error[-1]:+.3f} (se {scatter[-1]:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
