"""Rollout of one row of a real network against an implementation that holds all attention maps: memory and time.

Each runs in processes of its own on the same weights and the same random tokens: one for time, in processor seconds,
and one for memory, the peak of resident memory during the work beside what the process held with the model loaded.
There the C library gives freed blocks back at once (glibc, ``MALLOC_MMAP_THRESHOLD_``), so that what counts is memory
in use; with its default, which keeps them, the peak is told beside it. The plain implementation asks an eager model
for all its maps and multiplies the dense matrices of its layers.

    python benchmarks/rollout.py .cache/demo/smollm2-135m --length 2048
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from clock import clock

STRENGTH = 0.1


def resident(field: str) -> float:
    """VmRSS or VmHWM of this process, in MiB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def one_row(model: str, ids: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The last row by catenary."""
    import catenary as ct
    from catenary.measure.rollout import measure_rollout
    from catenary.text.windows import Windows

    held = ct.load(model, weights="pretrained")
    held.fingerprint  # noqa: B018  # part of the record, computed once per model
    measure_rollout(held, Windows(ids[:, :16]), schedule=STRENGTH)
    found = []
    return measured(lambda: found.append(measure_rollout(held, Windows(ids), schedule=STRENGTH)), lambda: np.sqrt(
        found[0].energy[0, 0, 0, 0, 0]
    ))


def all_maps(model: str, ids: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The last row by the plain implementation."""
    import torch
    import transformers

    held = transformers.AutoModelForCausalLM.from_pretrained(model, attn_implementation="eager", dtype=torch.float32)
    backbone = held.eval().model
    found = []

    def work() -> None:
        with torch.no_grad():
            maps = backbone(input_ids=torch.from_numpy(ids), output_attentions=True, use_cache=False).attentions
            product = torch.eye(ids.shape[1])
            for part in maps:
                mixed = (1 - STRENGTH) * torch.eye(ids.shape[1]) + STRENGTH * part[0].mean(dim=0)
                product = mixed @ product
            found.append(product[-1].double().numpy())

    with torch.no_grad():
        backbone(input_ids=torch.from_numpy(ids[:, :16]))
    return measured(work, lambda: found[0])


def measured(work, result) -> tuple[np.ndarray, float, float]:  # type: ignore[no-untyped-def]
    """(row, MiB beside the start, processor seconds)."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again here
    before = resident("VmRSS")
    seconds = clock(work)
    return result(), resident("VmHWM") - before, seconds


def run(name: str, model: str, length: int) -> dict[str, Any]:
    """Row, seconds and peak of one implementation, and the peak again with freed memory given back."""
    command = [sys.executable, __file__, model, "--length", str(length), "--only", name]
    found = []
    for environment in ({}, {"MALLOC_MMAP_THRESHOLD_": "65536"}):
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {**found[0], "resident": found[0]["memory"], "memory": found[1]["memory"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--only", choices=["one_row", "all_maps"])
    options = parser.parse_args()
    if options.only:
        ids = np.random.default_rng(0).integers(0, 40_000, (1, options.length))
        row, memory, seconds = globals()[options.only](options.model, ids)
        print(json.dumps({"row": row.tolist(), "memory": memory, "seconds": seconds}))
        return
    seen = {name: run(name, options.model, options.length) for name in ("one_row", "all_maps")}
    ours, plain = seen["one_row"], seen["all_maps"]
    print(json.dumps({
        "length": options.length,
        "memory_mib": [round(ours["memory"]), round(plain["memory"])],
        "memory_ratio": round(plain["memory"] / ours["memory"], 1),
        "memory_mib_default_allocator": [round(ours["resident"]), round(plain["resident"])],
        "seconds": [round(ours["seconds"], 1), round(plain["seconds"], 1)],
        "time_ratio": round(plain["seconds"] / ours["seconds"], 2),
        "largest_difference": float(np.abs(np.array(ours["row"]) - np.array(plain["row"])).max()),
    }))


if __name__ == "__main__":
    main()
