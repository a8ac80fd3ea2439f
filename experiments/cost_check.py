"""Estimated against actual processor seconds and peak memory of whole `catenary measure` commands, one process each.

Each case is a command; both numbers are read from its ``run.json``. Prints a Markdown table.
Run: python experiments/cost_check.py [FOLDER of a model with weights] (about five minutes on an idle core)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WIDE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 4, "vocab_size": 64,
    "num_key_value_heads": 2, "intermediate_size": 704, "initializer_range": 0.03, "max_position_embeddings": 8192,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "model_type": "gpt2", "n_embd": 256, "n_layer": 6, "n_head": 4, "n_positions": 4096, "vocab_size": 64,
    "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
CASES = [
    ("preset:toy", "--length 512 --windows 8 --probes 4"),
    ("preset:toy", "--length 2048 --windows 2 --probes 4"),
    ("wide", "--length 1024 --windows 2 --probes 4"),
    ("wide", "--length 512 --windows 4 --probes 4 --nets 2 --dtype bfloat16"),
    ("plain", "--length 1024 --windows 2 --probes 6"),
    ("plain", "--length 2048 --windows 1 --probes 2"),
    ("gpt2", "--length 256 --windows 1 --probes 2"),
]
TRAINED = "--weights pretrained --tokens vanilla --length 256 --windows 2 --probes 1"


def main(trained: str | None) -> None:
    """One row per case."""
    print("| command | estimated s | actual s | ratio | estimated MiB | actual MiB | ratio |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        configs = {"wide": WIDE, "plain": PLAIN}
        for name, config in configs.items():
            (Path(folder) / name).mkdir()
            (Path(folder) / name / "config.json").write_text(json.dumps(config))
        cases = [*CASES, *([(trained, TRAINED)] if trained else [])]
        for number, (model, options) in enumerate(cases):
            given = f"{folder}/{model}/config.json" if model in configs else model
            out = Path(folder) / f"out{number}"
            command = [sys.executable, "-m", "catenary", "measure", given, *options.split(), "--quiet", "--out", out]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            cost = json.loads((out / "run.json").read_text())["cost"]
            print(f"| {Path(model).name} {options} | {row(cost)} |", flush=True)


def row(cost: dict[str, dict[str, float]]) -> str:
    """Seconds and MiB, estimated and actual, each with estimated over actual."""
    before, after = cost["estimated"], cost["actual"]
    seconds = (before["processor_seconds"], after["processor_seconds"])
    memory = (before["peak_bytes"] / 2**20, after["peak_bytes"] / 2**20)
    return (
        f"{seconds[0]:.1f} | {seconds[1]:.1f} | {seconds[0] / seconds[1]:.2f} | "
        f"{memory[0]:.0f} | {memory[1]:.0f} | {memory[0] / memory[1]:.2f}"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
