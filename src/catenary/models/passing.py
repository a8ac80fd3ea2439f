"""Refuse a network in which some module passes no gradient, as those do that round what goes through them.

Autograd then sees the residual stream alone there, and a profile would be wrong without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.extra import torch
from catenary.models.stream import run
from catenary.models.undisturbed import undisturbed


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a module in the pilot run, and what it gave."""

    part: torch.nn.Module
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    output: torch.Tensor

    @property
    def kind(self) -> tuple[type, ...]:
        """Modules alike in this pass alike: the class, and the kinds of tensor that its weights are."""
        return type(self.part), *(type(weight.detach()) for weight in self.part.parameters())

    def again(self, factor: float) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The same call on fresh leaves of ``factor`` times what carries a gradient."""
        leaves: list[torch.Tensor] = []

        def fresh(value: Any) -> Any:
            if not _moves(value):
                return value
            leaves.append((factor * value.detach()).requires_grad_(True))
            return leaves[-1].clone()

        named = {name: fresh(value) for name, value in self.named.items()}
        return leaves, self.part(*map(fresh, self.arguments), **named)

    @property
    def passes(self) -> bool:
        """Whether a gradient comes back to some input, or nothing could: the output stays at 1.5 times the input."""
        leaves, output = self.again(1.0)
        if output.requires_grad:
            cotangent = torch.linspace(-1, 2, output.numel()).reshape(output.shape).to(output)
            found = torch.autograd.grad(output, leaves, cotangent, allow_unused=True)
            if any(gradient is not None and bool(gradient.any()) for gradient in found):
                return True
        return torch.equal(self.again(1.5)[1], self.output)


def check_passing(module: torch.nn.Module, anatomy: Anatomy) -> None:
    """Look at an innermost module of every kind in a pilot run of the backbone.

    Raises:
        NotApplicable: naming a module that gives no gradient though its output depends on its input.
    """
    calls: list[_Call] = []
    ran: set[torch.nn.Module] = set()

    def look(part: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], output: object) -> None:
        ran.add(part)
        given = any(_moves(value) for value in (*arguments, *named.values()))
        if given and isinstance(output, torch.Tensor) and output.is_floating_point():
            calls.append(_Call(part, arguments, named, output))

    vectors = pilot_vectors(anatomy.embedding).requires_grad_(True)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    with undisturbed(module):
        handles = [part.register_forward_hook(look, with_kwargs=True) for part in anatomy.backbone.modules()]
        try:
            run(anatomy.backbone, vectors.clone(), mask)
        finally:
            for handle in handles:
                handle.remove()
        innermost = [call for call in calls if not any(p in ran for p in call.part.modules() if p is not call.part)]
        for call in {call.kind: call for call in innermost}.values():
            if not call.passes:
                paths = {id(part): name for name, part in module.named_modules()}
                raise NotApplicable(
                    f"{type(module).__name__} cannot be differentiated: {paths[id(call.part)]} "
                    f"({type(call.part).__name__}) gives no gradient, though its output depends on its input, as where "
                    "activations are quantised; load the weights unquantised, or quantise the weights alone"
                )


def _moves(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad
