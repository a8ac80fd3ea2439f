"""Layers: rows of residual steps, each with one or more branches between norms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from catenary.architecture.attention import Attention
from catenary.architecture.feed_forward import FeedForward
from catenary.architecture.norms import Norm
from catenary.architecture.recurrent import Recurrence
from catenary.errors import NotApplicable

T = TypeVar("T")


@dataclass(frozen=True)
class Branch:
    """What is added to the residual stream x: scale * after(mix(before(x))); a norm that is None is left out."""

    mix: Attention | FeedForward | Recurrence
    before: Norm | None = None
    after: Norm | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Step:
    """One residual step: with y = before(x), x becomes after(keep * y + the sum of its branches at y).

    Several branches in one step are parallel: all of them see the same y.
    """

    branches: tuple[Branch, ...]
    keep: float = 1.0
    before: Norm | None = None
    after: Norm | None = None


@dataclass(frozen=True)
class Layer:
    """The residual steps of one layer, in order."""

    steps: tuple[Step, ...]

    @property
    def branches(self) -> Iterator[Branch]:
        """All branches of all steps."""
        return (branch for step in self.steps for branch in step.branches)

    @property
    def attentions(self) -> tuple[Attention, ...]:
        """All attentions of this layer."""
        return tuple(branch.mix for branch in self.branches if isinstance(branch.mix, Attention))

    @property
    def feed_forwards(self) -> tuple[FeedForward, ...]:
        """All feed-forward networks of this layer."""
        return tuple(branch.mix for branch in self.branches if isinstance(branch.mix, FeedForward))

    @property
    def recurrences(self) -> tuple[Recurrence, ...]:
        """All that mixes positions in this layer without a softmax."""
        return tuple(branch.mix for branch in self.branches if isinstance(branch.mix, Recurrence))

    @property
    def attention(self) -> Attention:
        """The attention of this layer; ``NotApplicable`` where it has none or several."""
        return _only(self.attentions, "attention")

    @property
    def feed_forward(self) -> FeedForward:
        """The feed-forward network of this layer; ``NotApplicable`` where it has none or several."""
        return _only(self.feed_forwards, "feed-forward network")

    @property
    def norm(self) -> Norm:
        """The norm in front of the branches of this layer; ``NotApplicable`` where they have none or unlike ones."""
        return _only(tuple({branch.before: None for branch in self.branches if branch.before}), "pre-norm")

    def with_mixers(self, attention: Attention | None = None, feed_forward: FeedForward | None = None) -> Layer:
        """This layer with another attention or feed-forward network in place of each of its own."""

        def changed(branch: Branch) -> Branch:
            if isinstance(branch.mix, Attention):
                return branch if attention is None else replace(branch, mix=attention)
            if isinstance(branch.mix, FeedForward):
                return branch if feed_forward is None else replace(branch, mix=feed_forward)
            return branch

        return Layer(tuple(replace(step, branches=tuple(map(changed, step.branches))) for step in self.steps))


def pre_norm(attention: Attention | Recurrence, feed_forward: FeedForward, norm: Norm, scale: float = 1.0) -> Layer:
    """x + scale * attention(norm(x)), then x + scale * feed_forward(norm(x)): Llama, GPT-2 and most others."""
    return Layer(tuple(Step((Branch(mix, before=norm, scale=scale),)) for mix in (attention, feed_forward)))


def parallel(attention: Attention | Recurrence, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + attention(norm(x)) + feed_forward(norm(x)): GPT-NeoX, GPT-J, Phi, Falcon, Cohere."""
    return Layer((Step((Branch(attention, before=norm), Branch(feed_forward, before=norm))),))


def sandwich(attention: Attention | Recurrence, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + norm(attention(norm(x))), then x + norm(feed_forward(norm(x))): Gemma 2 and 3, GLM 4."""
    return Layer(tuple(Step((Branch(mix, before=norm, after=norm),)) for mix in (attention, feed_forward)))


def post_branch(attention: Attention | Recurrence, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + norm(attention(x)), then x + norm(feed_forward(x)): OLMo 2 and 3, EXAONE 4."""
    return Layer(tuple(Step((Branch(mix, after=norm),)) for mix in (attention, feed_forward)))


def post_norm(attention: Attention | Recurrence, feed_forward: FeedForward, norm: Norm) -> Layer:
    """norm(x + attention(x)), then norm(x + feed_forward(x)): the first transformers, OPT-350m."""
    return Layer(tuple(Step((Branch(mix),), after=norm) for mix in (attention, feed_forward)))


def _only(found: tuple[T, ...], what: str) -> T:
    if len(found) != 1:
        raise NotApplicable(f"a layer with {len(found)} {what}s has not the one that was asked for")
    return found[0]
