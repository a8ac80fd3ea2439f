"""What enters the first layer: fixed positions against transformers' tables, groups against sums, all words drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from builders import gpt2_like
from catenary.architecture import Embedding, Norm, Sinusoid
from catenary.configs.sinusoid import fairseq_sinusoid, paper_sinusoid
from catenary.errors import InvalidInput
from catenary.theory.embedding import embedded, sinusoid_covariance

WIDTH, LENGTH = 32, 40


def table(sinusoid: Sinusoid, width: int, positions: int) -> NDArray[np.float64]:
    """Sines then cosines, position by position."""
    rows = []
    for position in range(sinusoid.offset, sinusoid.offset + positions):
        angles = [position * sinusoid.theta ** (-f / sinusoid.span) for f in range(width // 2)]
        rows.append([np.sin(a) for a in angles] + [np.cos(a) for a in angles])
    return np.array(rows)


def test_tables_are_those_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from transformers.models.ctrl.modeling_ctrl import positional_encoding
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
    from transformers.models.xglm.modeling_xglm import XGLMSinusoidalPositionalEmbedding

    fairseq = XGLMSinusoidalPositionalEmbedding.get_embedding(LENGTH + 2, WIDTH).numpy()[2:]
    np.testing.assert_allclose(table(fairseq_sinusoid(WIDTH), WIDTH, LENGTH), fairseq, atol=1e-5)
    marian = MarianSinusoidalPositionalEmbedding(LENGTH, WIDTH).create_weight().numpy()
    np.testing.assert_allclose(table(paper_sinusoid(WIDTH), WIDTH, LENGTH), marian, atol=1e-5)
    ctrl = positional_encoding(LENGTH, WIDTH, torch.float).numpy()
    np.testing.assert_allclose(table(paper_sinusoid(WIDTH), WIDTH, LENGTH), ctrl, atol=1e-5)
    with pytest.raises(InvalidInput, match="hidden_size must be >= 4"):
        fairseq_sinusoid(3)


@pytest.mark.parametrize("sinusoid", [fairseq_sinusoid(WIDTH), paper_sinusoid(WIDTH)])
@pytest.mark.parametrize("centred", [False, True])
def test_covariance_is_that_of_the_table(sinusoid: Sinusoid, centred: bool) -> None:
    rows = table(sinusoid, WIDTH, LENGTH)
    rows -= rows.mean(1, keepdims=True) * centred
    found = sinusoid_covariance(sinusoid, WIDTH, np.ones(LENGTH), centred)
    np.testing.assert_allclose(found.matrix, rows @ rows.T / WIDTH, atol=1e-13)
    np.testing.assert_allclose(found.same, (rows**2).mean(1), atol=1e-13)


def test_groups_average_their_pairs() -> None:
    sizes = np.array([1, 1, 3, 7, 12, 15, 1], dtype=float)
    rows = table(paper_sinusoid(WIDTH), WIDTH, LENGTH)
    pairs = rows @ rows.T / WIDTH
    found = sinusoid_covariance(paper_sinusoid(WIDTH), WIDTH, sizes)
    edges = np.concatenate(([0], np.cumsum(sizes))).astype(int)
    for g, (a, b) in enumerate(pairwise(edges)):
        for h, (c, d) in enumerate(pairwise(edges)):
            block = pairs[a:b, c:d]
            expected = block.mean() if g != h or b - a == 1 else block[~np.eye(b - a, dtype=bool)].mean()
            assert found.matrix[g, h] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    "embedding",
    [
        Embedding(0.5, position_std=0.3, scale=2.0),
        Embedding(0.5, position_std=0.3, norm=Norm("layer", 1e-5), shared_std=0.4),
        Embedding(0.5, position_std=0.2, fed_width=512, projection_std=0.05),
        Embedding(0.5, shared_std=0.4, norm=Norm("rms", 1e-5), fed_width=512, projection_std=0.1, projected="last"),
    ],
)
def test_words_against_drawn_embeddings(embedding: Embedding) -> None:
    """Covariances of drawn tokens at width 512: errors of order 1/sqrt(512 * 24 draws), a third of what is allowed."""
    width, length, draws = 512, 6, 24
    generator = np.random.default_rng(0)
    ids = np.array([0, 1, 0, 2, 3, 1])
    fed = width if embedding.fed_width is None else embedding.fed_width
    inner = fed if embedding.projected == "last" else width
    covariance = np.zeros((length, length))
    for _ in range(draws):
        tokens = (generator.standard_normal((4, fed)) * embedding.std)[ids] * embedding.scale
        matrix = generator.standard_normal((width, fed)) * embedding.projection_std
        x = tokens @ matrix.T if embedding.fed_width and embedding.projected == "first" else tokens
        x = x + generator.standard_normal((length, inner)) * embedding.position_std
        x = x + generator.standard_normal(inner) * embedding.shared_std
        if embedding.norm:
            x = x / np.sqrt((x**2).mean(1, keepdims=True) + embedding.norm.epsilon)
        if embedding.projected == "last":
            x = x @ matrix.T
        covariance += x @ x.T / width / draws
    start = embedded(replace(gpt2_like(), width=width, embedding=embedding), (ids[:, None] == ids).astype(float))
    np.testing.assert_allclose(start.stream.matrix, covariance, atol=0.04 * covariance.max())
    np.testing.assert_allclose(start.stream.same, np.diag(covariance), rtol=0.04)
