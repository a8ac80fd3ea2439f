r"""Self-attention with query, key and value matrices on the sphere, and its correlations.

The paper's equation 1.30 leaves open, in the text that is available, the law of the random matrices, how often they
are drawn, and the normaliser. What stands here is our reading: softmax weights; matrices \((1 + \eta G)/\lVert 1 + \eta
G\rVert_{op}\), \(G_{ij} \sim N(0, 1/d)\), drawn anew for each of the three, each time step and each prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import (
    Array,
    Numbers,
    at_least_zero,
    concentration,
    generator,
    one_number,
    positive,
    real,
    whole,
)
from catenary.kinetic.correlations.result import Correlations, source_tokens
from catenary.kinetic.particles.system import token_count

Points = Float64[np.ndarray, "*batch tokens d"]
"""One unit vector per token."""

Matrices = Float64[np.ndarray, "*prompts d d"]

_BATCH = 2**18
"""Scores held at once (2 MB)."""


@dataclass(frozen=True)
class Spheres:
    r"""N tokens on the unit sphere of dimension d - 1, each drawn towards the values of the earlier ones:

    \[ \dot x_j = P^\perp_{x_j} \sum_{k<j} A_{jk} V x_k, \qquad
       A_{jk} = \frac{\exp(\beta\langle Q x_j, K x_k\rangle - \tfrac{\lambda}{N}(j - k))}{\sum_{l<j} \exp(\beta\langle
       Q x_j, K x_l\rangle - \tfrac{\lambda}{N}(j - l))}, \]

    with the first token at rest and \(P^\perp_x v = v - \langle x, v\rangle x\). One evaluation costs O(N^2 d). On the
    circle (d = 2) with Q = K = V = 1 it is ``Circle`` but for the normaliser, which here follows the scores. Source:
    arXiv 2605.09213, Eq. 1.30, in our reading (see the module).

    Args:
        tokens: N >= 2.
        dimension: d >= 2.
        beta: inverse temperature of the scores, in (0, 700].
        lam: decay >= 0 over the prompt.
        noise: \(\eta \ge 0\), size of the random part of the matrices; 0 gives Q = K = V = 1.

    Raises:
        InvalidInput: an argument is out of range.
    """

    tokens: int
    dimension: int
    beta: float
    lam: float
    noise: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        token_count(self.tokens)
        whole("dimension", self.dimension, 2)
        one_number("beta", concentration(self.beta))
        one_number("lam", at_least_zero("lam", self.lam))
        one_number("noise", at_least_zero("noise", self.noise))

    def drift(self, points: Points, query: Matrices, key: Matrices, value: Matrices) -> Points:
        r"""\(\dot x\) at the given points, with one set of matrices per prompt (or one for all).

        Raises:
            InvalidInput: the points are not (..., tokens, dimension), or not finite.
        """
        here = real("points", points)
        if here.ndim < 2 or here.shape[-2:] != (self.tokens, self.dimension):
            raise invalid("points", f"must be (..., {self.tokens}, {self.dimension})", here.shape)
        scores = self.beta * (here @ query.mT) @ (here @ key.mT).mT + self._bias
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        push = (weights / weights.sum(axis=-1, keepdims=True)) @ (here @ value.mT)
        push[..., 0, :] = 0.0
        return np.asarray(push - (push * here).sum(axis=-1, keepdims=True) * here)

    def flow(self, start: Points, t: float, rng: np.random.Generator, *, step: float = 0.1) -> Points:
        r"""The points at time t, by Euler steps, each projected back to the sphere; error O(step).

        Matrices are drawn per step and per prompt, a prompt being an index of the last axis before the tokens: what
        stands before it shares its matrices.

        Args:
            start: unit vectors at time 0, (..., prompts, tokens, d).
            t: time >= 0.
            rng: source of the matrices; unused when ``noise`` is 0.
            step: longest step.

        Raises:
            InvalidInput: as ``drift``, or the step could be unstable: the drift changes with a token's own point at a
                rate of at most 2 + beta, and step (2 + beta) must not exceed 2.
        """
        duration = one_number("t", at_least_zero("t", t))
        length = one_number("step", positive("step", step))
        limit = 2 / (2 + self.beta)
        if length > limit:
            raise invalid("step", f"must be at most 2/(2 + beta) = {limit:.3g} for a stable step", step)
        points = real("start", start)
        if points.ndim < 3:
            raise invalid("start", "must be (..., prompts, tokens, d)", points.shape)
        count = int(np.ceil(duration / length * (1 - 1e-12)))
        for _ in range(count):
            points = points + duration / count * self.drift(points, *self._matrices(points.shape[-3], rng))
            points = points / np.linalg.norm(points, axis=-1, keepdims=True)
        return points

    @cached_property
    def _bias(self) -> Float64[np.ndarray, "tokens tokens"]:
        """Log positional weights; -inf for what a token does not see. The first, which rests, is given itself."""
        lags = np.subtract.outer(np.arange(self.tokens), np.arange(self.tokens))
        bias = np.where(lags > 0, -self.lam / self.tokens * lags, -np.inf)
        bias[0, 0] = 0.0
        return bias

    def _matrices(self, prompts: int, rng: np.random.Generator) -> tuple[Matrices, Matrices, Matrices]:
        one = np.eye(self.dimension)
        if not self.noise:
            return one, one, one
        drawn = rng.standard_normal((3, prompts, self.dimension, self.dimension)) / np.sqrt(self.dimension)
        matrices = one + self.noise * drawn
        query, key, value = matrices / np.linalg.norm(matrices, ord=2, axis=(-2, -1), keepdims=True)
        return query, key, value


def uniform_points(shape: tuple[int, ...], rng: np.random.Generator) -> Float64[np.ndarray, "*batch d"]:
    """Independent uniform unit vectors; the last entry of ``shape`` is d."""
    drawn = rng.standard_normal(shape)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True))


def correlate_on_sphere(
    system: Spheres, *, t: float, sigma0: Numbers, samples: int, seed: int, step: float = 0.1
) -> Correlations:
    r"""\(N\,\mathrm{Cov}\) read through \(k(x, y) = e^{-|x - y|^2}\), for tokens that start independent and uniform.

    Half the second difference under resampling of the source token (primes), with the other tokens and the matrices
    shared, as ``GlauberPair`` on the circle:

    \[ \tfrac{N}{2}\,\mathrm{E}\bigl[k(x_N, x_i) - k(x'_N, x_i) - k(x_N, x'_i) + k(x'_N, x'_i)\bigr]. \]

    The paper's accuracy \(A_N(t, \sigma_0) = \mathrm{E}\,e^{-|x_N(t) - x_{i_0}(0)|^2}\) is a constant plus this
    over N. Source: arXiv 2605.09213, Section 7.1, in our reading (see the module).

    Args:
        system: the particles.
        t: time > 0.
        sigma0: positions of the sources in (0, 1); each costs a run.
        samples: number of independent prompts >= 2.
        seed: seed of the prompts and the matrices.
        step: longest time step.

    Raises:
        InvalidInput: an argument is out of range, or the step could be unstable.
    """
    whole("samples", samples, 2)
    one_number("t", positive("t", t))
    tokens, dimension = system.tokens, system.dimension
    sources = source_tokens(sigma0, tokens)
    copies = 1 + len(sources)
    rng = generator(seed)
    size = max(1, _BATCH // (copies * tokens**2))
    rows = []
    for done in range(0, samples, size):
        count = min(size, samples - done)
        start = np.repeat(uniform_points((1, count, tokens, dimension), rng), copies, axis=0)
        others = uniform_points((len(sources), count, dimension), rng)
        old = start[0][:, sources].swapaxes(0, 1)
        start[np.arange(1, copies), :, sources] = others
        end = system.flow(start, t, rng, step=step)[..., -1, :]
        gain = _similarity(end[:1], old) - _similarity(end[:1], others)
        rows.append(tokens / 2 * (gain - _similarity(end[1:], old) + _similarity(end[1:], others)).T)
    return Correlations("pair", (sources + 1) / tokens, np.concatenate(rows), float(copies), seed)


def _similarity(left: Array, right: Array) -> Float64[np.ndarray, "sources prompts"]:
    return np.asarray(np.exp(-2 * (1 - (left * right).sum(axis=-1))))
