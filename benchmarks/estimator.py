"""How much the measurement costs beyond the passes it needs, and how much less than an exact Jacobian.

Prints time(measure_jacobian, K) / time(one bare forward + K bare autograd.grad calls), and time(exact) / time(K),
on one network in one run. Times are processor seconds of this process, the two are timed in turn, and the median of
the ratios is taken, so that a busy machine does not decide.

    python benchmarks/estimator.py --probes 8 --length 128 --repeats 7
"""

from __future__ import annotations

import argparse
import json
import statistics

import numpy as np
import torch
from clock import clock

import catenary as ct
from catenary.text.windows import Windows

QWEN2_LIKE = {
    "model_type": "qwen2", "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4,
    "num_key_value_heads": 1, "intermediate_size": 1390, "vocab_size": 16, "initializer_range": 0.0374,
}
"""The mean-field constants of Qwen2-0.5B at width 256."""


def bare(module: torch.nn.Module, vectors: torch.Tensor, probes: int) -> None:
    """What any implementation must do: one forward pass of the backbone and K backward passes to the input."""
    leaf = vectors.clone().requires_grad_(True)
    last = module.model(inputs_embeds=leaf, use_cache=False).last_hidden_state[:, -1]
    for _ in range(probes):
        torch.autograd.grad(last, leaf, torch.randn_like(last), retain_graph=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    model = ct.load(QWEN2_LIKE, seed=0)
    windows = Windows(np.arange(options.length)[None], "random", "gaussian")
    vectors = torch.randn(1, options.length, 256) * 0.0374
    ct.measure_jacobian(model, windows, probes=1)  # finds the anatomy and hashes the weights once per model
    bare(model.module, vectors, 1)
    ratios, ours = [], []
    for _ in range(options.repeats):
        reference = clock(lambda: bare(model.module, vectors, options.probes))
        ours.append(clock(lambda: ct.measure_jacobian(model, windows, probes=options.probes)))
        ratios.append(ours[-1] / reference)
    exact = clock(lambda: ct.measure_jacobian(model, windows, method="exact"))
    print(json.dumps({
        "probes": options.probes, "length": options.length, "repeats": options.repeats,
        "seconds": round(statistics.median(ours), 4),
        "over_bare_passes": round(statistics.median(ratios), 3),
        "exact_over_probes": round(exact / statistics.median(ours), 1),
    }))


if __name__ == "__main__":
    main()
