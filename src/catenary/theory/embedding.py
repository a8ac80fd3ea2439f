r"""What enters the first layer: the covariance of the embedded tokens, and the factor back to the fed vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Sinusoid
from catenary.theory.positions.pairs import Pairs, Vector
from catenary.theory.steps import unit_scale


@dataclass(frozen=True, eq=False)
class Start:
    """What enters the first layer: covariance of the stream, and the gradients' factor back to the fed vectors."""

    stream: Pairs
    factor: Vector


def embedded(
    architecture: Architecture, equal: Float64[np.ndarray, "n n"], sizes: Float64[np.ndarray, " n"] | None = None
) -> Start:
    r"""Embedded tokens: \(C^0_{ij} = N[s^2\sigma_e^2\Pr[id_i = id_j] + \sigma_p^2\delta_{ij} + \sigma_t^2 + P_{ij}]\).

    s is the embedding's scale, \(\sigma_p\) the std of learned positions, P that of sinusoidal ones
    (``sinusoid_covariance``), \(\sigma_t\) the std of a vector that every token gets, N the norm after the embedding,
    if any. Where vectors of \(d_e\) channels are projected by a matrix of std \(\sigma\), a factor \(d_e\sigma^2\)
    joins \(s^2\), or the result of N where the projection comes last. The gradients' factor is \(s^2\) times those of
    norm and projection.

    Args:
        architecture: gives the embedding and the width.
        equal: probability that tokens i and j have one id; the diagonal belongs to ``Pairs.matrix`` (1 where a
            group is a single position).
        sizes: how many consecutive positions each group holds; None: every position by itself.
    """
    embedding = architecture.embedding
    counts = np.ones(len(equal)) if sizes is None else sizes
    projection = 1.0 if embedding.fed_width is None else embedding.fed_width * embedding.projection_std**2
    first, last = (projection, 1.0) if embedding.projected == "first" else (1.0, projection)
    scale = first * embedding.scale**2
    token, position, shared = variances(architecture)
    matrix = token * equal + shared
    np.einsum("ii->i", matrix)[counts == 1] += position
    stream = Pairs(matrix, np.full(len(equal), token + position + shared))
    if embedding.sinusoid is not None:
        width, centred = fixed_width(architecture), removes_means(architecture)
        stream = stream.plus(sinusoid_covariance(embedding.sinusoid, width, counts, centred))
    factor = np.full(len(equal), scale)
    if embedding.norm is not None:
        unit = unit_scale(stream, embedding.norm)
        stream, factor = stream.scaled(unit), factor * unit**2
    return Start(stream.scaled(np.full(len(equal), last**0.5)), factor * last)


def variances(architecture: Architecture) -> tuple[float, float, float]:
    """Variances of entries in front of the embedding's norm: a token's, a learned position's, what all tokens get."""
    embedding = architecture.embedding
    first = 1.0
    if embedding.fed_width is not None and embedding.projected == "first":
        first = embedding.fed_width * embedding.projection_std**2
    return first * (embedding.scale * embedding.std) ** 2, embedding.position_std**2, embedding.shared_std**2


def fixed_width(architecture: Architecture) -> int:
    """How many channels a fixed position has: the fed vectors', where the projection comes last."""
    embedding = architecture.embedding
    return architecture.width if embedding.fed_width is None or embedding.projected == "first" else embedding.fed_width


def sinusoid_covariance(
    sinusoid: Sinusoid, width: int, sizes: Float64[np.ndarray, " n"], centred: bool = False
) -> Pairs:
    r"""Groups' \(P_{ij} = \frac1d\sum_{f<d/2}\cos(\omega_f(i-j)) - \bar p_i\bar p_j\), \(\omega_f = \theta^{-f/span}\).

    \(\bar p_i = \frac1d\sum_f(\sin\omega_fi + \cos\omega_fi)\) is subtracted where ``centred``: slow cosines are near
    1, so that these vectors have a mean over their channels, which a LayerNorm removes. A group's mean of
    \(e^{i\omega j}\) is a geometric sum, so that averages over pairs of different members are exact for the first term;
    the second is taken at its mean. Derived here.

    Args:
        sinusoid: the frequencies and the first position.
        width: d, even or with one channel of zeros.
        sizes: how many consecutive positions each group holds.
        centred: without the mean over channels.
    """
    frequencies = sinusoid.theta ** (-np.arange(width // 2) / sinusoid.span)
    centres = sinusoid.offset + np.cumsum(sizes) - (sizes + 1) / 2
    half = frequencies[:, None] / 2
    shrunk = np.sin(half * sizes) / (sizes * np.sin(half))
    cosine, sine = shrunk * np.cos(2 * half * centres), shrunk * np.sin(2 * half * centres)
    matrix = (cosine.T @ cosine + sine.T @ sine) / width
    same = np.full(sizes.size, frequencies.size / width)
    several = np.flatnonzero(sizes > 1)
    own, count = matrix[several, several], sizes[several]
    matrix[several, several] = (count * own - same[several]) / (count - 1)
    single = np.flatnonzero(sizes == 1)
    matrix[single, single] = same[single]
    if centred:
        mean = (cosine + sine).sum(axis=0) / width
        matrix -= np.outer(mean, mean)
        same -= mean**2
    return Pairs(matrix, same)


def removes_means(architecture: Architecture) -> bool:
    """Whether every norm that the embedded stream meets is a LayerNorm.

    A post-norm network's first branches still see the mean: with Marian's embeddings that is .03 dex.
    """
    branches = [branch for layer in architecture.layers for branch in layer.branches]
    steps = [step for layer in architecture.layers for step in layer.steps]
    norms = [architecture.embedding.norm, *(branch.before for branch in branches), *(step.before for step in steps)]
    norms += [step.after for step in steps]
    return all(norm.kind == "layer" for norm in norms if norm is not None)
