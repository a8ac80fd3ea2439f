r"""Gaussian attention heads drawn over tokens of a given covariance, and their exact softmax.

Queries and keys are independent random projections of the tokens. At large width only the tokens' covariance X
matters: every channel of q and of k is an independent Gaussian vector over the positions with covariance X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.architecture import Attention, Kernel
from catenary.errors import NotApplicable
from catenary.theory.positions.kernels import operator

JITTER = 1e-10
"""Added to X's diagonal before its Cholesky factor, for equal tokens: logits of equal keys then differ by 1e-5."""


@dataclass(frozen=True, eq=False)
class Side:
    """The queries or the keys of one head: unit variance for unit inputs, or unit rms behind QK-norm; not turned.

    ``rms`` is each vector's before QK-norm, None without one.
    """

    vectors: Float64[np.ndarray, "L head_dim"]
    rms: Float64[np.ndarray, " L"] | None


@dataclass(frozen=True, eq=False)
class Head:
    r"""One drawn head: \(A = \mathrm{softmax}(f(z) + b)\), \(z_{ij} = s\,\mathrm{Rot}_i q_i\cdot\mathrm{Rot}_j k_j\).

    ``attention`` is A (rows sum to 1, or to less with a sink), ``slope`` is \(A_{ij} f'(z_{ij})\) with f the
    soft-cap, ``angles`` are RoPE's frequencies of the leading pairs of channels (a, a + F).
    """

    query: Side
    key: Side
    scale: float
    angles: Float64[np.ndarray, " F"]
    logits: Float64[np.ndarray, "L L"]
    attention: Float64[np.ndarray, "L L"]
    slope: Float64[np.ndarray, "L L"]


@dataclass(frozen=True, eq=False)
class HeadLaw:
    r"""How the heads of one attention are drawn.

    For head dimension \(h_d\) the logits have \(\mathrm{Cov}(z_{ij}, z_{kl}) \to v X_{ik}X_{jl}c_{(i-k)-(j-l)}\)
    with v the logit variance and c RoPE's mean cosine; they are products of \(h_d\) Gaussian channels, not Gaussian
    themselves. Heads of one key/value head share k. The mask is the log of each group's mean kernel, relative to its
    largest entry in a row, so that windows, chunks, prefixes and ALiBi all are masks.

    Attributes:
        attention: what is drawn; its groups' kernels are the masks.
        width: d, the stream's width, for the logit variance.
        length: L.
        rotary: turn queries and keys where the attention does; False leaves RoPE out, which changes nothing in the
            mean over heads of distinct tokens beyond .01 dex.

    Raises:
        NotApplicable: gated or latent attention.
    """

    attention: Attention
    width: int
    length: int
    rotary: bool = True

    def __post_init__(self) -> None:
        """Refuse what has no drawn heads."""
        for name in ("gate", "latent"):
            if getattr(self.attention, name) is not None:
                raise NotApplicable(f"sampled heads cover plain attention, not one with a {name}")

    @property
    def turned(self) -> int:
        """Channels of a head that RoPE turns."""
        turning = self.attention.rotary
        return turning.dims if turning is not None and self.rotary else 0

    @property
    def products(self) -> int:
        """Products of two L x L matrices that one head takes, forward and backward."""
        apart = self.attention.head_dim if self.attention.qk_norm else self.turned
        return 6 + 9 * (apart < self.attention.head_dim) + 6 * apart

    @cached_property
    def _masks(self) -> dict[Kernel, Float64[np.ndarray, "L L"]]:
        return {group.kernel: _mask(group.kernel, self.length) for group in self.attention.groups}

    def draw(self, covariance: Float64[np.ndarray, "L L"], seed: tuple[int, ...]) -> Iterator[Head]:
        """The query heads in order, one at a time; one seed gives one set of heads."""
        attention, random = self.attention, np.random.default_rng(seed)
        factor = np.linalg.cholesky(covariance + JITTER * np.eye(self.length))
        owners = [index * attention.kv_heads // attention.heads for index in range(attention.heads)]
        kernels = [group.kernel for group in attention.groups for _ in range(group.heads)]
        key, held = self._side(factor, random), 0
        for owner, kernel in zip(owners, kernels, strict=True):
            if owner != held:
                key, held = self._side(factor, random), owner
            sink = None if attention.sink is None else random.normal(attention.sink.mean, attention.sink.std)
            yield self.head(self._side(factor, random), key, kernel, sink)

    def head(self, query: Side, key: Side, kernel: Kernel, sink: float | None = None) -> Head:
        """The exact softmax of given queries and keys, with a sink's logit where there is one."""
        attention = self.attention
        scale = math.sqrt(attention.logit_variance(self.width) / attention.head_dim)
        angles = np.empty(0)
        if self.turned:
            assert attention.rotary is not None
            angles = attention.rotary.theta ** (-np.arange(0, self.turned, 2) / self.turned)
        logits = scale * turn(query.vectors, angles) @ turn(key.vectors, angles).T
        capped, slope = logits, np.ones(())
        if attention.softcap is not None:
            capped = attention.softcap * np.tanh(logits / attention.softcap)
            slope = 1 - (capped / attention.softcap) ** 2
        exponent = capped + self._masks[kernel]
        top = exponent.max(axis=1, keepdims=True, initial=-math.inf if sink is None else sink)
        weights = np.exp(exponent - top)
        weights /= weights.sum(axis=1, keepdims=True) + (0.0 if sink is None else np.exp(sink - top))
        return Head(query, key, scale, angles, logits, weights, weights * slope)

    def _side(self, factor: Float64[np.ndarray, "L L"], random: np.random.Generator) -> Side:
        vectors = factor @ random.standard_normal((self.length, self.attention.head_dim))
        if not self.attention.qk_norm:
            return Side(vectors, None)
        rms = np.sqrt(np.mean(vectors**2, axis=1))
        return Side(vectors / rms[:, None], rms)


def turn(
    vectors: Float64[np.ndarray, "L head_dim"], angles: Float64[np.ndarray, " F"]
) -> Float64[np.ndarray, "L head_dim"]:
    """RoPE: the channel pairs (a, a + F), a < F, of position p turned by p * angle; the rest as it is."""
    if not angles.size:
        return vectors
    pairs = as_pairs(vectors, angles.size) * phases(len(vectors), angles)
    return np.hstack([pairs.real, pairs.imag, vectors[:, 2 * angles.size :]])


def as_pairs(vectors: Float64[np.ndarray, "L head_dim"], count: int) -> Complex128[np.ndarray, "L F"]:
    """The leading channel pairs (a, a + F) as complex numbers."""
    return np.asarray(vectors[:, :count] + 1j * vectors[:, count : 2 * count])


def phases(length: int, angles: Float64[np.ndarray, " F"]) -> Complex128[np.ndarray, "L F"]:
    """e^{i p angle} at every position p."""
    return np.asarray(np.exp(1j * np.arange(length)[:, None] * angles))


def _mask(kernel: Kernel, length: int) -> Float64[np.ndarray, "L L"]:
    mean = operator(kernel, length).dense()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mean / mean.max(axis=1, keepdims=True)))
