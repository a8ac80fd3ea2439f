"""Gradients through drawn heads against automatic differentiation: to rounding for scores, over values and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from catenary.architecture import Attention, Causal, Rotary, Sink
from catenary.theory.positions.pairs import Pairs
from catenary.theory.sampled.attention import SampledAttention
from catenary.theory.sampled.heads import Head, HeadLaw, Side
from catenary.theory.sampled.scores import HeadPass
from small_attention import WIDTH, attention, draw, tokens

LENGTH = 5
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "turned": {"rotary": Rotary(50.0, 4)},
    "half turned": {"rotary": Rotary(50.0, 2)},
    "qk-norm": {"qk_norm": True},
    "qk-norm turned": {"qk_norm": True, "rotary": Rotary(50.0, 4)},
    "softcap": {"softcap": 1.2},
    "sink": {"sink": Sink(0.5)},
    "all": {"qk_norm": True, "rotary": Rotary(50.0, 2), "softcap": 1.2, "sink": Sink(0.5)},
}


def raw(side: Side) -> torch.Tensor:
    return torch.tensor(side.vectors if side.rms is None else side.vectors * side.rms[:, None])


def softmax(held: Attention, query: torch.Tensor, key: torch.Tensor, scale: float) -> torch.Tensor:
    """A from vectors in front of QK-norm, written in torch."""

    def prepared(x: torch.Tensor) -> torch.Tensor:
        if held.qk_norm:
            x = x / x.pow(2).mean(-1, keepdim=True).sqrt()
        dims = held.rotary.dims if held.rotary else 0
        turned = x.clone()
        for f in range(dims // 2):
            angle = torch.arange(len(x)) * held.rotary.theta ** (-2 * f / dims)  # type: ignore[union-attr]
            a, b = x[:, f], x[:, f + dims // 2]
            turned[:, f] = a * angle.cos() - b * angle.sin()
            turned[:, f + dims // 2] = a * angle.sin() + b * angle.cos()
        return turned

    z = scale * prepared(query) @ prepared(key).T
    if held.softcap:
        z = held.softcap * torch.tanh(z / held.softcap)
    z = z.masked_fill(~torch.ones_like(z, dtype=torch.bool).tril(), -torch.inf)
    if held.sink:
        z = torch.cat([z, torch.full((len(z), 1), held.sink.mean)], 1)
    return z.softmax(1)[:, : len(query)]


def gradients(seed: int) -> np.ndarray:
    g = np.random.default_rng(seed).standard_normal((LENGTH, LENGTH)) / 2
    return np.asarray(g @ g.T)


@pytest.mark.parametrize("case", CASES)
def test_score_paths_to_rounding(case: str) -> None:
    """The Jacobian of the softmax, contracted with Cov(s_ij, s_kl) = D_ik X_jl."""
    held, x, d = attention(head_dim=4, v=3.0, **CASES[case]), tokens(LENGTH), gradients(2)
    (head,) = draw(held, x)
    query, key = raw(head.query), raw(head.key)
    assert np.allclose(softmax(held, query, key, head.scale), head.attention, atol=1e-14)
    jacobian = torch.autograd.functional.jacobian(lambda q, k: softmax(held, q, k, head.scale), (query, key))
    expected = head.attention.T @ d @ head.attention
    for side in jacobian:
        expected += np.einsum("ilja,ik,ln,knma->jm", side, d, x, side, optimize=True)
    assert np.allclose(HeadPass.over(head, x).backward(d), expected, atol=1e-13)


@pytest.mark.parametrize("case", ["plain", "turned", "qk-norm"])
def test_attention_over_drawn_values_and_outputs(case: str) -> None:
    """A whole attention in torch, two heads, with random values and outputs: mean of the inputs' gradient products.

    Projections with orthogonal rows make the key and query paths independent at any width; between values and keys
    a correlation of order z/width remains.
    """
    dim, draws, width = 4, 3000, 160
    held = attention(2, 1, head_dim=dim, v=2.0, **CASES[case])
    random = np.random.default_rng(5)
    stream = np.linalg.cholesky(tokens(LENGTH) + 1e-12 * np.eye(LENGTH))
    frame = np.linalg.qr(random.standard_normal((width, width)))[0].T
    x = torch.tensor(width**0.5 * stream @ frame[:LENGTH]).requires_grad_(True)
    rows = torch.tensor(np.linalg.qr(random.standard_normal((width, 3 * dim)))[0].T)
    scale = (held.logit_variance(WIDTH) / dim) ** 0.5
    key, *queries = (x @ rows[k * dim : (k + 1) * dim].T for k in range(3))
    d = torch.tensor(gradients(3))
    # One cotangent per draw, of covariance D / dim over the positions for each of the outputs' channels.
    root = torch.linalg.cholesky(d)
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    total = torch.zeros(LENGTH, LENGTH, dtype=torch.float64)
    attentions = [softmax(held, query, key, scale) for query in queries]
    forward, squares = torch.zeros_like(total), torch.zeros_like(total[0])
    for _ in range(draws):
        values = normal(dim, width) / width**0.5
        outputs = normal(2, dim, dim) / dim**0.5 / 2**0.5
        y = sum(a @ (x @ values.T) @ o.T for a, o in zip(attentions, outputs, strict=True))
        cotangent = root @ normal(LENGTH, dim) / dim**0.5
        (grad,) = torch.autograd.grad(y, x, cotangent, retain_graph=True)
        total += grad @ grad.T
        squares += (grad**2).sum(1) ** 2
        forward += (y @ y.T).detach() / dim
    law = HeadLaw(held, WIDTH, LENGTH)
    heads = [law.head(normed(query, held), normed(key, held), Causal()) for query in queries]
    correlation = (x @ x.T).detach().numpy() / width
    expected = np.mean([HeadPass.over(head, correlation).backward(d.numpy()) for head in heads], axis=0)
    found = total.numpy() / draws
    diagonal = found.diagonal()
    error = np.sqrt((squares.numpy() / draws - diagonal**2) / draws)
    # Entries off the diagonal scatter at most like the larger of their two.
    bound = 4 * np.maximum(error, error[:, None]) + 2 / width * np.sqrt(np.outer(diagonal, diagonal))
    assert (np.abs(found - expected) < bound).all()
    assert (error < 0.04 * diagonal).all()
    mean = np.mean([HeadPass.over(head, correlation).full for head in heads], axis=0)
    assert np.allclose(forward.numpy() / draws, mean, atol=0.08)


def normed(vectors: torch.Tensor, held: Attention) -> Side:
    found = vectors.detach().numpy()
    if not held.qk_norm:
        return Side(found, None)
    rms = np.sqrt(np.mean(found**2, axis=1))
    return Side(found / rms[:, None], rms)


def test_mixer_is_the_mean_over_heads() -> None:
    held, x = attention(4, 2, v=2.0), tokens(LENGTH)
    law, d = HeadLaw(held, WIDTH, LENGTH), gradients(4)
    outcome = SampledAttention(law, 3.0, (7,)).forward(Pairs(x, np.ones(LENGTH)))
    heads: list[Head] = list(law.draw(x, (7,)))
    passes = [HeadPass.over(head, x) for head in heads]
    assert np.allclose(outcome.added.matrix, 3.0 * np.mean([p.full for p in passes], axis=0), rtol=1e-13)
    back = outcome.passed.backward(Pairs(d, d.diagonal().copy()))
    assert np.allclose(back.matrix, 3.0 * np.mean([p.backward(d) for p in passes], axis=0), rtol=1e-12)
    assert np.array_equal(back.same, back.matrix.diagonal())
