"""Attention at birth by sums over all pairs of keys, and attention drawn as real matrices with autograd.

Nothing is taken from the package's theory: mean kernels are dense matrices, fluctuations the sums that define them.
"""

from __future__ import annotations

import numpy as np
import torch

from catenary.architecture import Attention


def first_order(
    mean: np.ndarray, keys: np.ndarray, values: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of the outputs and the spread V, to first order in the logit variance.

    A = mean + fluctuation with Cov(dA_ij, dA_kl) = v K_ik mean_ij mean_kl centred(K)_jl, the centring of a softmax.
    """
    length = len(mean)
    out, spread = np.empty((length, length)), np.empty((length, length))
    for i in range(length):
        for k in range(length):
            centred = centre(keys, mean[i], mean[k])
            weights = np.outer(mean[i], mean[k])
            spread[i, k] = (weights * centred * values).sum()
            out[i, k] = (weights * values).sum() + variance * keys[i, k] * spread[i, k]
    return out, spread


def first_order_backward(
    mean: np.ndarray, keys: np.ndarray, values: np.ndarray, variance: float, gradient: np.ndarray
) -> np.ndarray:
    """Gradients at the inputs: through values (mean and fluctuation), through keys, through queries."""
    _, spread = first_order(mean, keys, values, variance)
    through = np.zeros_like(gradient)
    for i in range(len(mean)):
        for k in range(len(mean)):
            weights = np.outer(mean[i], mean[k])
            fluctuating = variance * keys[i, k] * weights
            through += gradient[i, k] * (weights + fluctuating * centre(keys, mean[i], mean[k]))
            through += gradient[i, k] * fluctuating * centre(values, mean[i], mean[k])
            through[i, k] += gradient[i, k] * variance * spread[i, k]
    return through


def centre(r: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """r - (r second) - (first r) + first r second: what a softmax's derivative leaves of a covariance of logits."""
    rows, columns = r @ second, first @ r
    return r - rows[:, None] - columns[None, :] + first @ rows


def drawn(
    attention: Attention, width: int, covariance: np.ndarray, gradient: np.ndarray, networks: int, unit: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Mean covariance per coordinate of the outputs, and of the inputs' gradients, of causal attention drawn anew.

    Inputs have the given covariance (``unit``: then scaled to unit rms, as a norm does), output gradients theirs.
    """
    generator = torch.Generator().manual_seed(0)
    inputs, outputs = (torch.tensor(np.linalg.cholesky(c)).float() for c in (covariance, gradient))
    forward, backward = np.zeros_like(covariance), np.zeros_like(covariance)
    for _ in range(networks):
        x = inputs @ torch.randn(len(inputs), width, generator=generator)
        x = (rms(x) if unit else x).requires_grad_()
        y = attend(x, attention, generator)
        cotangent = outputs @ torch.randn(len(inputs), width, generator=generator)
        (back,) = torch.autograd.grad((y * cotangent).sum(), x)
        y = y.detach()
        forward += (y @ y.T / width / networks).numpy()
        backward += (back @ back.T / width / networks).numpy()
    return forward, backward


def attend(x: torch.Tensor, attention: Attention, generator: torch.Generator) -> torch.Tensor:
    """One causal attention with freshly drawn matrices: plain, latent or gated."""

    def apply(y: torch.Tensor, channels: int, std: float) -> torch.Tensor:
        return y @ (std * torch.randn(y.shape[-1], channels, generator=generator))

    def split(y: torch.Tensor) -> torch.Tensor:
        return y.view(len(y), attention.heads, -1).transpose(0, 1)

    heads, std = attention.heads, attention.query_key_std
    if attention.latent is None:
        size = heads * attention.head_dim
        query, key, value = (split(apply(x, size, s)) for s in (std, std, attention.value_std))
        if attention.qk_norm:
            query, key = rms(query), rms(key)
    else:
        latent = attention.latent
        source = x if latent.query_rank is None else rms(apply(x, latent.query_rank, std))
        query = split(apply(source, heads * (latent.plain_dim + latent.rotary_dim), std))
        low = rms(apply(x, latent.rank, std))
        shared = apply(x, latent.rotary_dim, std).expand(heads, -1, -1)
        key = torch.cat([split(apply(low, heads * latent.plain_dim, std)), shared], -1)
        value = split(apply(low, heads * latent.value_dim, attention.value_std))
    logits = attention.query_scale * query @ key.transpose(1, 2)
    future = torch.triu(torch.ones(len(x), len(x), dtype=torch.bool), 1)
    mixed = logits.masked_fill(future, -torch.inf).softmax(-1) @ value
    mixed = mixed.transpose(0, 1).reshape(len(x), -1)
    if attention.gate is not None:
        channels = {"channel": mixed.shape[1], "head": heads, "token": 1}[attention.gate.per]
        gates = torch.sigmoid(apply(x, channels, attention.gate.std))
        mixed = mixed * gates.repeat_interleave(mixed.shape[1] // channels, 1)
    return apply(mixed, x.shape[1], attention.output_std)


def rms(x: torch.Tensor) -> torch.Tensor:
    """Unit root mean square along the last axis."""
    return x / x.pow(2).mean(-1, keepdim=True).sqrt()
