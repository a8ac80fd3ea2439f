"""What enters the first layer, and the factor back to the fed vectors: against drawn vectors and their differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from builders import gpt2_like
from catenary.architecture import Architecture, Branch, Embedding, Layer, Norm, Sinusoid, Step
from catenary.theory.embedding import embedded

RMS, LAYER = Norm("rms", 1e-6), Norm("layer", 1e-5)
IDS = np.array([0, 1, 2, 0, 3])
EQUAL = (IDS[:, None] == IDS).astype(float)


def with_embedding(embedding: Embedding, width: int = 4000, norm: Norm = RMS) -> Architecture:
    base = gpt2_like()
    layer = Layer(tuple(Step((Branch(branch.mix, before=norm),)) for branch in base.layers[0].branches))
    return replace(base, width=width, layers=(layer,), embedding=embedding, final_norm=norm)


def drawn(embedding: Embedding, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Covariance per channel of embedded tokens from drawn vectors, and |d x_i / d e_i|_F^2 / width by differences."""
    rng = np.random.default_rng(seed)
    fed = embedding.fed_width or width
    inside = width if embedding.projected == "first" else fed
    vectors = embedding.std * rng.standard_normal((IDS.max() + 1, fed))[IDS]
    places = embedding.position_std * rng.standard_normal((IDS.size, inside))
    shared = embedding.shared_std * rng.standard_normal(inside)
    matrix = embedding.projection_std * rng.standard_normal((fed, width))

    def enter(e: np.ndarray) -> np.ndarray:
        x = embedding.scale * e
        if embedding.fed_width is not None and embedding.projected == "first":
            x = x @ matrix
        x = x + places + shared
        if embedding.norm is not None:
            if embedding.norm.kind == "layer":
                x = x - x.mean(1, keepdims=True)
            x = x / np.sqrt((x**2).mean(1, keepdims=True) + embedding.norm.epsilon)
        return x @ matrix if embedding.fed_width is not None and embedding.projected == "last" else x

    x = enter(vectors)
    moved = [((enter(vectors + 1e-4 * t) - x) / 1e-4) ** 2 for t in rng.standard_normal((6, *vectors.shape))]
    return x @ x.T / width, np.mean(moved, axis=(0, 2))


CASES = {
    "scale and positions": Embedding(0.1, position_std=0.07, scale=3.0),
    "norm": Embedding(0.1, position_std=0.05, norm=LAYER),
    "shared vector, norm": Embedding(0.1, position_std=0.05, shared_std=0.08, norm=LAYER),
    "projected first": Embedding(0.1, position_std=0.05, fed_width=1500, projection_std=0.02, scale=2.0),
    "projected last": Embedding(0.1, position_std=0.05, norm=LAYER, fed_width=1500, projection_std=0.03,
                                projected="last", shared_std=0.05),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_embedded_tokens_match_drawn_vectors(name: str) -> None:
    covariance, factor = drawn(CASES[name], 4000)
    start = embedded(with_embedding(CASES[name]), EQUAL)
    level = start.stream.same.max()
    # Products of 1,500 channels or more scatter by 1/sqrt(1500).
    np.testing.assert_allclose(start.stream.matrix, covariance, atol=0.1 * level)
    np.testing.assert_allclose(start.stream.same, covariance.diagonal(), rtol=0.1)
    np.testing.assert_allclose(start.stream.matrix.diagonal(), start.stream.same)
    np.testing.assert_allclose(start.factor, factor, rtol=0.1)


def table(sinusoid: Sinusoid, width: int, length: int) -> np.ndarray:
    """Position vectors, sines first, one row per position."""
    rows = []
    for position in range(length):
        angles = [(position + sinusoid.offset) * sinusoid.theta ** (-f / sinusoid.span) for f in range(width // 2)]
        rows.append([math.sin(a) for a in angles] + [math.cos(a) for a in angles])
    return np.array(rows)


def test_layer_norms_remove_the_mean_of_sinusoids_and_rms_norms_do_not() -> None:
    embedding = Embedding(0.02, sinusoid=Sinusoid(10_000.0, 16.0))
    kept, removed = (embedded(with_embedding(embedding, 32, norm), EQUAL).stream for norm in (RMS, LAYER))
    mean = table(embedding.sinusoid, 32, 5).mean(1)  # type: ignore[arg-type]
    np.testing.assert_allclose(kept.matrix - removed.matrix, np.outer(mean, mean), atol=1e-12)
    assert mean.min() > 0.3
