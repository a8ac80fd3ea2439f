"""Peak memory of long profiles: a toy of two layers of width 128 at 2k to 32k tokens, each length in its own process.

Prints, per type, MiB beside the weights at each length, and the exponent b of memory ~ L^b fitted on a log-log scale.
Run: python experiments/long_context.py [LONGEST]   (32768 unless said otherwise; about five minutes on an idle core)
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import catenary as ct
from catenary.models.allocator import release_freed_blocks
from catenary.study.spent import Meter

COMMON: dict[str, Any] = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 344, "vocab_size": 16,
    "num_key_value_heads": 1, "max_position_embeddings": 1 << 15, "initializer_range": 0.05, "bos_token_id": 0,
    "eos_token_id": 0, "pad_token_id": None,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**COMMON, "model_type": "llama"},
    "gpt2": {
        "model_type": "gpt2", "n_embd": 128, "n_layer": 2, "n_head": 2, "n_positions": 1 << 15, "vocab_size": 16,
        "bos_token_id": 0, "eos_token_id": 0,
    },
    "mistral": {**COMMON, "model_type": "mistral", "sliding_window": 512, "head_dim": 64},
}  # fmt: skip


def peak(kind: str, length: int, *, recompute: bool = False) -> int:
    """Bytes by which one profile raises the resident memory of a fresh process that has measured a short one."""
    code = f"from long_context import alone; alone({kind!r}, {length}, {recompute})"
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here)
    return int(json.loads(done.stdout))


def alone(kind: str, length: int, recompute: bool) -> None:
    """Measure in this process and print the bytes."""
    release_freed_blocks()
    model = ct.load(CONFIGS[kind])
    ct.measure_jacobian(model, ct.random_windows(64, 1, 0), probes=1, recompute=recompute)
    windows = ct.random_windows(length, 1, 0)
    meter = Meter()
    before = meter.peak
    ct.measure_jacobian(model, windows, probes=1, recompute=recompute)
    print(json.dumps(meter.peak - before))


def exponent(lengths: list[int], memory: list[int]) -> float:
    """The slope of log memory against log length."""
    return float(np.polyfit(np.log(lengths), np.log(memory), 1)[0])


def main(longest: int) -> None:
    """One row per type."""
    lengths = [length for length in (2048, 8192, 32768) if length <= longest]
    print("| type | " + " | ".join(f"{length:,}" for length in lengths) + " | exponent |")
    print("|---" * (len(lengths) + 2) + "|")
    for kind, recompute in (("llama", False), ("mistral", False), ("gpt2", False), ("llama", True)):
        memory = [peak(kind, length, recompute=recompute) for length in lengths]
        name = kind + (", recomputed" if recompute else "")
        row = " | ".join(f"{size / 2**20:.0f}" for size in memory)
        print(f"| {name} | {row} | {exponent(lengths, memory):.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 32768)
