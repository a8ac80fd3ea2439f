r"""A layer's Jacobian as a sum of five, by linearity of the vjp under cuts.

A pre-norm layer is \(y = x + a(x)\), \(z = y + f(y)\), so its Jacobian is \((1 + F)(1 + A) = 1 + A + F + FA\) with
\(A = \partial a/\partial x\) at x and \(F = \partial f/\partial y\) at y; \(A = V + S\), where V has the attention
weights held fixed. In a parallel layer \(z = x + a(x) + f(x)\) and FA = 0. Cutting a branch removes its term:

\[I = J_{\text{cut},\text{cut}},\quad F = J_{\text{cut},\text{on}} - I,\quad V = J_{\text{frozen},\text{cut}} - I,
\quad S = J_{\text{on},\text{cut}} - J_{\text{frozen},\text{cut}},\quad FA = J - J_{\text{cut},\text{on}}
- J_{\text{on},\text{cut}} + I.\]

Derived here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float

from catenary.errors import NotApplicable
from catenary.models.attention_calls import frozen_weights
from catenary.models.branches import Branches, cut
from catenary.models.extra import torch
from catenary.models.replay import Replay, agree

Vector = Float[torch.Tensor, "n L _"]


@dataclass(frozen=True)
class Mode:
    """What carries gradient in a layer: attention wholly, with its weights frozen, or not; the feed-forward or not."""

    attention: Literal["on", "frozen", "cut"] = "on"
    feed_forward: bool = True


EVERYTHING = Mode()
FROZEN = Mode("frozen")
ONLY_FEED_FORWARD = Mode("cut")
ONLY_ATTENTION = Mode("on", False)
ONLY_VALUES = Mode("frozen", False)

PARTS: dict[str, Mapping[Mode, int]] = {
    "everything": {EVERYTHING: 1},
    "value": {FROZEN: 1},
    "score": {EVERYTHING: 1, FROZEN: -1, ONLY_FEED_FORWARD: 1},
    "no-ffn": {ONLY_ATTENTION: 1},
    "value-no-ffn": {ONLY_VALUES: 1},
}
"""What each layer keeps in a whole profile, as a combination of modes.

``everything`` (1+F)(1+V+S); ``value`` (1+F)(1+V): every attention weight a constant; ``score`` (1+F)(1+S): the
weights' gradient alone; ``no-ffn`` 1+V+S; ``value-no-ffn`` 1+V, what attention rollout approximates.
"""


@dataclass(frozen=True, eq=False)
class LayerVjps:
    """Pulls cotangents through single layers of one pass, under any mode; one layer's graph lives at a time."""

    replay: Replay
    branches: tuple[Branches, ...]

    def pull(self, layer: int, mode: Mode, cotangents: Sequence[Vector]) -> list[Vector]:
        """J_mode^T c for every cotangent c at the layer's output."""
        if not cotangents:
            return []
        parts = self.branches[layer]
        leaf = self.replay.input(layer).detach().requires_grad_(True)
        with ExitStack() as stack:
            if mode.attention == "cut":
                stack.enter_context(cut([parts.attention]))
            if mode.attention == "frozen":
                stack.enter_context(frozen_weights(self.replay.anatomy, (leaf.shape[0], leaf.shape[1])))
            if not mode.feed_forward:
                stack.enter_context(cut([parts.feed_forward]))
            output = self.replay.layer(layer, leaf)
        if not agree(output, self.replay.input(layer + 1)):
            raise NotApplicable(f"layer {layer} run again on its own input gives another output, so it can't be split")
        return [torch.autograd.grad(output, leaf, c, retain_graph=True)[0] for c in cotangents]

    def combine(
        self, layer: int, wanted: Mapping[str, Mapping[Mode, int]], cotangents: Mapping[str, Sequence[Vector]]
    ) -> dict[str, list[Vector]]:
        """For each name its combination of modes applied to its own cotangents, with each mode run once."""
        result: dict[str, list[Vector]] = {}
        for mode in dict.fromkeys(mode for parts in wanted.values() for mode in parts):
            names = [name for name, parts in wanted.items() if mode in parts]
            pulled = iter(self.pull(layer, mode, [c for name in names for c in cotangents[name]]))
            for name in names:
                factor = wanted[name][mode]
                new = [factor * next(pulled) for _ in cotangents[name]]
                old = result.get(name)
                result[name] = new if old is None else [a + b for a, b in zip(old, new, strict=True)]
        return result

    def terms(self, layer: int, cotangents: Sequence[Vector]) -> list[list[Vector]]:
        """The five terms applied to each cotangent: one list per term, in the order I, V, S, F, F(V + S)."""
        def pulled(mode: Mode) -> list[Vector]:
            return self.pull(layer, mode, cotangents)

        whole, forward = pulled(EVERYTHING), pulled(ONLY_FEED_FORWARD)
        attention, values = pulled(ONLY_ATTENTION), pulled(ONLY_VALUES)
        columns = zip(cotangents, whole, forward, attention, values, strict=True)
        rows = [(c, v - c, a - v, f - c, w - f - a + c) for c, w, f, a, v in columns]
        return [list(term) for term in zip(*rows, strict=True)]

    def enter(self, cotangents: Sequence[Vector]) -> list[Vector]:
        """From the first layer's input to the vectors fed."""
        leaf = self.replay.vectors.detach().requires_grad_(True)
        output = self.replay.entry(leaf)
        return [torch.autograd.grad(output, leaf, c, retain_graph=True)[0] for c in cotangents]

    def leave(self, cotangents: Sequence[Vector]) -> list[Vector]:
        """From the stream in front of the final norm to the last layer's output."""
        leaf = self.replay.last.detach().requires_grad_(True)
        output = self.replay.exit(leaf)
        return [torch.autograd.grad(output, leaf, c, retain_graph=True)[0] for c in cotangents]
