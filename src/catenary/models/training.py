r"""Train a network the way arXiv 2603.10123 does: AdamW, a cosine from one rate to another, clipped gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from catenary.errors import invalid
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.stream import accepts
from catenary.models.undisturbed import undisturbed

PARTS = ("exp_avg", "exp_avg_sq", "step")
"""What AdamW keeps for each parameter: both moments, and how many updates it has had."""


@dataclass(frozen=True)
class Recipe:
    r"""How a network is trained; the defaults are those of arXiv 2603.10123, appendix G.

    \(\eta_t=\eta_\text{end}+\tfrac12(\eta_0-\eta_\text{end})(1+\cos(\pi t/n))\) for update t = 0..n-1. The paper names
    neither betas nor epsilon: torch's defaults are taken. Decay acts on every parameter, also torch's default.
    """

    steps: int = 100
    rate: float = 5e-4
    final_rate: float = 5e-5
    weight_decay: float = 0.1
    clip: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        """Refuse a recipe under which nothing is trained, or towards infinity."""
        if self.steps < 1:
            raise invalid("steps", "must be >= 1", self.steps)
        if not (0 < self.rate < 1 and 0 <= self.final_rate <= self.rate):
            raise invalid("rate", "must be in (0, 1), and final_rate in [0, rate]", (self.rate, self.final_rate))
        if not (self.weight_decay >= 0 and 0 < self.clip < math.inf):
            raise invalid("weight_decay", "must be >= 0, and clip > 0", (self.weight_decay, self.clip))

    def rate_at(self, step: int) -> float:
        """The learning rate of update ``step``, from 0."""
        return self.final_rate + (self.rate - self.final_rate) * (1 + math.cos(math.pi * step / self.steps)) / 2


class Trainer:
    """A network in training: ``step`` makes one update, ``state`` and ``restore`` carry it over an interruption.

    The network is in eval mode, without dropout, so that an update is a function of weights, moments and tokens alone.
    Between updates its weights are frozen, as ``load`` leaves them.
    """

    def __init__(self, model: Model, recipe: Recipe) -> None:
        """Nothing is trained yet; the model's own module is what will change."""
        if model.dtype not in (torch.float32, torch.float64):
            kind = str(model.dtype).removeprefix("torch.")
            raise invalid("dtype", "must be float32 to train", kind, "half types lose updates of this size")
        self.module, self.recipe, self.done = model.module, recipe, 0
        self._named = [(name, p) for name, p in model.module.named_parameters() if p.is_floating_point()]
        self._optimiser = torch.optim.AdamW(
            [parameter for _, parameter in self._named], lr=recipe.rate, betas=(recipe.beta1, recipe.beta2),
            eps=recipe.epsilon, weight_decay=recipe.weight_decay,
        )

    def step(self, ids: Int64[np.ndarray, "b L"]) -> float:
        """One update on some windows; the loss before it, in nats per token.

        Raises:
            InvalidInput: the loss or its gradient is not finite.
        """
        with undisturbed(self.module):
            for _, parameter in self._named:
                parameter.requires_grad_(True)
            loss = next_token_loss(self.module, ids)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            norm = torch.nn.utils.clip_grad_norm_([p for _, p in self._named], self.recipe.clip)
            value = float(loss.detach())
            if not math.isfinite(value) or not math.isfinite(float(norm)):
                raise invalid("loss", f"must stay finite, update {self.done}", value, "train with a lower --rate")
            for group in self._optimiser.param_groups:
                group["lr"] = self.recipe.rate_at(self.done)
            self._optimiser.step()
            self._optimiser.zero_grad(set_to_none=True)
        self.done += 1
        return value

    def state(self) -> dict[str, torch.Tensor]:
        """Weights and moments by name, on the CPU: all that the next update depends on beside its tokens."""
        found = {f"weight/{name}": parameter.detach().cpu().clone() for name, parameter in self._named}
        for name, parameter in self._named:
            kept = self._optimiser.state.get(parameter, {})
            found |= {f"{part}/{name}": kept[part].detach().cpu().clone() for part in PARTS if part in kept}
        return found

    def restore(self, state: Mapping[str, torch.Tensor], done: int) -> None:
        """Go on after ``done`` updates from what ``state`` gave then."""
        with torch.no_grad():
            for name, parameter in self._named:
                parameter.copy_(state[f"weight/{name}"])
                if f"step/{name}" in state:
                    kept: dict[str, Any] = {
                        part: state[f"{part}/{name}"].clone().to(parameter.device if part != "step" else "cpu")
                        for part in PARTS
                    }
                    self._optimiser.state[parameter] = kept
        self.done = done

    @property
    def parameters(self) -> int:
        """Numbers that are trained."""
        return sum(parameter.numel() for _, parameter in self._named)


def next_token_loss(module: torch.nn.Module, ids: Int64[np.ndarray, "b L"]) -> Float[torch.Tensor, ""]:
    """Mean cross-entropy of every token given those before it, in nats, from float32 logits."""
    return _nats(module, ids, "mean")


def token_losses(module: torch.nn.Module, ids: Int64[np.ndarray, "b L"]) -> Float[torch.Tensor, "b L-1"]:
    """Cross-entropy of each token but the first, as in ``next_token_loss``."""
    return _nats(module, ids, "none").reshape(len(ids), -1)


def _nats(module: torch.nn.Module, ids: Int64[np.ndarray, "b L"], reduction: str) -> Float[torch.Tensor, ...]:
    tokens = torch.from_numpy(np.array(ids)).to(next(module.parameters()).device)
    options = {"attention_mask": torch.ones_like(tokens), "use_cache": False}
    known = {name: value for name, value in options.items() if accepts(module, name)}
    logits = module(input_ids=tokens, **known).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten(), reduction=reduction
    )
