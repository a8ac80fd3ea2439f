"""Small untrained networks of a stated shape, and what many of them agree on: a mean with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.reading import Reading
from catenary.sample import Sample
from catenary.statistics import Units, interval


def small_network(
    width: int, heads: int, layers: int, *, std: float, seed: int, score_std: float | None = None, wide: float = 2.0,
    head_size: int | None = None,
) -> Any:  # fmt: skip
    """A Llama; ``score_std`` is the std of queries and keys where it is another, ``wide`` the FFN's width over its.

    Its embeddings have std ``std`` as all other weights, as published Llama and Qwen2 networks at birth. With a
    ``head_size`` heads do not share the width out: the output matrix is scaled so that attention stays as large.
    """
    import catenary as ct

    model = ct.load({
        "model_type": "llama", "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": heads, "intermediate_size": round(wide * width), "vocab_size": 16,
        "initializer_range": std, "max_position_embeddings": 4096, "bos_token_id": 0, "eos_token_id": 0,
        "pad_token_id": None, "head_dim": head_size or width // heads,
    }, seed=seed)  # fmt: skip
    if head_size is not None:
        for layer in model.anatomy.layers:
            layer.self_attn.o_proj.weight.data *= math.sqrt(width / (heads * head_size))
    if score_std is not None:
        for layer in model.anatomy.layers:
            for part in (layer.self_attn.q_proj, layer.self_attn.k_proj):
                part.weight.data *= score_std / std
    return model


def std_for(width: int, logit_variance: float) -> float:
    r"""The std at which a logit has variance v at birth: \(v = (d\sigma^2)^2\), whatever the head size."""
    return math.sqrt(math.sqrt(logit_variance) / width)


def over_networks(name: str, values: Sequence[float] | Float64[np.ndarray, " n"], meaning: str) -> Reading:
    """Mean over independent networks with Student's 95 % interval."""
    from scipy.stats import t as student

    found = np.asarray(values, dtype=np.float64)
    half = float(student.ppf(0.975, found.size - 1) * found.std(ddof=1) / math.sqrt(found.size))
    mean = float(found.mean())
    return Reading(name, mean, meaning, mean - half, mean + half)


def slopes(x: Sequence[float], logs: Float64[np.ndarray, "x n"]) -> Float64[np.ndarray, " n"]:
    """Least-squares slope of each column of ``logs`` against ln x: one power-law exponent per network."""
    centred = np.log(x) - np.mean(np.log(x))
    return np.asarray(centred @ logs / (centred @ centred))


def resampled(
    name: str, sample: Sample, formula: Any, meaning: str, *, low: float = -np.inf, high: float = np.inf
) -> Reading:
    """``formula`` of the root-mean-square curve, with the 95 % bootstrap interval over the Sample's unit.

    ``formula`` maps curves (r, L) to numbers (r,), which lie between ``low`` and ``high``.
    """
    units = Units.of(sample, "rms")
    value = float(formula(sample.profile("rms").values[None])[0])
    draws = units.bootstrap(lambda curves: np.asarray(formula(curves))[:, None])[:, 0]
    return Reading(name, value, meaning, *interval(value, draws, units.count, low, high))
