"""Every form of residual step against loops over pairs of tokens that share nothing with the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtr

from catenary.architecture import (
    Architecture,
    Attention,
    Branch,
    Embedding,
    FeedForward,
    HeadGroup,
    Layer,
    Norm,
    Step,
    parallel,
    post_branch,
    post_norm,
    pre_norm,
    sandwich,
)
from catenary.theory.birth import exact_energies
from catenary.theory.embedding import embedded
from oracles.steps import Attend, Formula, Network, Part, profile

WIDTH, LENGTH = 64, 7
NORM = Norm("rms", 1e-12)
OTHER = Norm("layer", 1e-11)
ATTENTION = Attention((HeadGroup(4),), 4, 16, 0.25, False, 0.05, 0.09, 0.11)
PLAIN = FeedForward(96, False, "gelu", 0.11, 0.1)
GATED = FeedForward(96, True, "silu", 0.11, 0.12)
CLAMPED = FeedForward(96, True, "quick_gelu", 0.11, 0.12, offset=1.0, limit=7.0)
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * ndtr(x),
    "silu": lambda x: x * expit(x),
    "quick_gelu": lambda x: x * expit(1.702 * x),
}
MINIMAX = Layer(tuple(Step((Branch(mix, scale=0.7),), keep=1.3, before=NORM) for mix in (ATTENTION, GATED)))
HALVES = (
    Layer((Step((Branch(ATTENTION, before=NORM),)),)),
    Layer((Step((Branch(PLAIN, before=NORM),)),)),
    Layer((Step((Branch(GATED, after=NORM),)),)),
)
TWO_NORMS = Layer((Step((Branch(ATTENTION, before=NORM), Branch(PLAIN, before=OTHER, scale=0.5))),))
SHARED_EXIT = Layer((Step((Branch(ATTENTION, before=NORM, after=NORM, scale=0.6), Branch(GATED)), 0.8, None, NORM),))

STACKS: dict[str, tuple[Layer, ...]] = {
    "pre-norm": (pre_norm(ATTENTION, GATED, NORM),) * 2,
    "multiplier": (pre_norm(ATTENTION, GATED, NORM, scale=0.22),) * 3,
    "parallel": (parallel(ATTENTION, PLAIN, NORM),) * 3,
    "parallel, two norms": (TWO_NORMS,) * 3,
    "sandwich": (sandwich(ATTENTION, GATED, NORM),) * 2,
    "post-branch": (post_branch(ATTENTION, GATED, NORM),) * 2,
    "post-branch, plain": (post_branch(ATTENTION, PLAIN, NORM),) * 2,
    "post-norm": (post_norm(ATTENTION, PLAIN, NORM),) * 2,
    "post-norm, gated": (post_norm(ATTENTION, GATED, NORM),) * 2,
    "norm inside the residual": (MINIMAX,) * 2,
    "half blocks": HALVES * 2,
    "unlike layers": (pre_norm(ATTENTION, GATED, NORM), sandwich(ATTENTION, PLAIN, NORM), TWO_NORMS, SHARED_EXIT),
    "clamped and offset": (pre_norm(ATTENTION, CLAMPED, NORM), post_norm(ATTENTION, CLAMPED, NORM)),
}


def network(layers: tuple[Layer, ...], final: Norm | None = NORM) -> Architecture:
    return Architecture("steps", "test", WIDTH, layers, Embedding(0.8, 0.5), final, "learned")


def formulas(layers: tuple[Layer, ...]) -> list[Formula]:
    """The same network in the oracle's words."""
    causal = np.tril(np.ones((LENGTH, LENGTH))) / np.arange(1, LENGTH + 1)[:, None]

    def mix(of: Attention | FeedForward) -> Attend | Network:
        if isinstance(of, Attention):
            value, output = WIDTH * of.value_std**2, of.heads * of.head_dim * of.output_std**2
            return Attend(value * output, causal)
        other = None
        if of.gated:
            reach, offset = of.limit or np.inf, of.offset
            other = lambda x: np.clip(x, -reach, reach) + offset  # noqa: E731
        cut = of.limit or np.inf
        return Network(
            of.width * of.output_std**2, WIDTH * of.input_std**2,
            lambda x: FUNCTIONS[of.activation](np.minimum(x, cut)), other,
        )  # fmt: skip

    return [
        Formula(
            tuple(Part(mix(b.mix), b.before is not None, b.after is not None, b.scale) for b in step.branches),
            step.keep, step.before is not None, step.after is not None,
        )
        for layer in layers for step in layer.steps
    ]  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_of_steps_matches_loops(name: str) -> None:
    held = network(STACKS[name])
    ids = np.array([0, 1, 2, 0, 3, 4, 1])
    equal = (ids[:, None] == ids).astype(float)
    start = 0.8**2 * equal + 0.5**2 * np.eye(LENGTH)
    expected = profile(formulas(held.layers), start)
    found = exact_energies(held, embedded(held, equal), "uniform")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_forms_differ() -> None:
    """So that the test above can tell one from another: more than 0.02 dex between any two of the common forms.

    Post-branch layers are close to sandwich ones: what a norm in front would change, the norm behind undoes.
    """
    names = ("pre-norm", "multiplier", "sandwich", "post-norm, gated", "norm inside the residual")
    held = [replace(network(STACKS[name][:1] * 2), embedding=Embedding(0.1, 0.05)) for name in names]
    curves = [np.log10(exact_energies(a, embedded(a, np.eye(LENGTH)), "uniform")) / 2 for a in held]
    for i, one in enumerate(curves):
        for other in curves[:i]:
            assert np.abs(one - other).max() > 0.02


def test_a_last_norm_without_a_final_one_multiplies_everything() -> None:
    layers = STACKS["post-norm"]
    open_end = (*layers[:-1], Layer((layers[-1].steps[0], replace(layers[-1].steps[1], after=None))))
    held = [network(layers, None), network(open_end)]
    with_norm, without = (exact_energies(a, embedded(a, np.eye(LENGTH)), "uniform") for a in held)
    np.testing.assert_allclose(with_norm / without, with_norm[0] / without[0], rtol=1e-9)
    assert abs(with_norm[0] / without[0] - 1) > 0.01
