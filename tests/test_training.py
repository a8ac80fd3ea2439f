"""One update equals AdamW written out by hand; the schedule, the loss, and going on from a kept state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput
from catenary.models.training import Recipe, Trainer, next_token_loss
from tiny_models import TINY

IDS = np.random.default_rng(5).integers(0, 50, (4, 1, 12))
RECIPE = Recipe(steps=4, rate=0.02, final_rate=0.005, weight_decay=0.1, clip=0.5)


def network(kind: str = "llama", dtype: str = "float64") -> Any:
    return ct.load(TINY[kind], seed=3, dtype=dtype)


def loss_by_hand(module: torch.nn.Module, ids: np.ndarray) -> torch.Tensor:
    """Minus the mean log-probability of each next token, one token at a time, from the logits."""
    logits = module(input_ids=torch.from_numpy(ids)).logits
    terms = [
        torch.log(torch.exp(logits[b, t]).sum()) - logits[b, t, ids[b, t + 1]]
        for b in range(ids.shape[0]) for t in range(ids.shape[1] - 1)
    ]
    return sum(terms) / len(terms)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])  # gpt2's output matrix is its embedding, and it has dropout
def test_updates_are_adamw_by_hand(kind: str) -> None:
    trained = network(kind)
    trainer = Trainer(trained, RECIPE)
    losses = [trainer.step(ids) for ids in IDS[:3]]
    module = network(kind).module
    weights = dict(module.named_parameters())
    first = {name: np.zeros(p.shape) for name, p in weights.items()}
    second = {name: np.zeros(p.shape) for name, p in weights.items()}
    for t, ids in enumerate(IDS[:3]):
        for p in weights.values():
            p.requires_grad_(True)
        loss = loss_by_hand(module, ids)
        assert losses[t] == pytest.approx(float(loss.detach()), rel=1e-6)  # logits are compared in float32
        gradients = torch.autograd.grad(loss, list(weights.values()))
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        assert norm > RECIPE.clip, "the test must clip"
        rate = 0.005 + 0.0075 * (1 + math.cos(math.pi * t / 4))
        for (name, p), gradient in zip(weights.items(), gradients, strict=True):
            g = gradient.numpy() * RECIPE.clip / (norm + 1e-6)
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g**2
            step = (first[name] / (1 - 0.9 ** (t + 1))) / (np.sqrt(second[name] / (1 - 0.999 ** (t + 1))) + 1e-8)
            with torch.no_grad():
                p.copy_(torch.from_numpy((1 - rate * RECIPE.weight_decay) * p.detach().numpy() - rate * step))
    for name, p in trained.module.named_parameters():
        assert np.allclose(p.detach().numpy(), weights[name].detach().numpy(), rtol=1e-4, atol=1e-6), name
        assert not p.requires_grad, "weights are frozen between updates"


def test_schedule_of_the_paper() -> None:
    recipe = Recipe()
    assert recipe.rate_at(0) == pytest.approx(5e-4)
    assert recipe.rate_at(50) == pytest.approx((5e-4 + 5e-5) / 2)
    assert recipe.rate_at(100) == pytest.approx(5e-5)
    rates = [recipe.rate_at(t) for t in range(101)]
    assert rates == sorted(rates, reverse=True)


def test_loss_of_uniform_logits_is_the_log_of_the_vocabulary() -> None:
    model = network()
    model.module.lm_head.weight.data.zero_()
    assert float(next_token_loss(model.module, IDS[0])) == pytest.approx(math.log(50), rel=1e-6)


def test_going_on_from_a_state_is_going_on() -> None:
    whole = network(dtype="float32")
    trainer = Trainer(whole, RECIPE)
    for ids in IDS[:2]:
        trainer.step(ids)
    kept = trainer.state()
    rest = [trainer.step(ids) for ids in IDS[2:]]
    other = network(dtype="float32")
    again = Trainer(other, RECIPE)
    again.restore(kept, 2)
    assert [again.step(ids) for ids in IDS[2:]] == rest
    assert other.fingerprint == whole.fingerprint
    # The moments matter: without them the same weights take another step.
    bare = network(dtype="float32")
    forgetful = Trainer(bare, RECIPE)
    forgetful.restore({name: t for name, t in kept.items() if name.startswith("weight/")}, 2)
    for ids in IDS[2:]:
        forgetful.step(ids)
    assert bare.fingerprint != whole.fingerprint


def test_what_cannot_be_trained_is_refused() -> None:
    with pytest.raises(InvalidInput, match="dtype must be float32 to train, got 'bfloat16'"):
        Trainer(network(dtype="bfloat16"), RECIPE)
    for wrong in ({"steps": 0}, {"rate": 0.0}, {"final_rate": 1.0}, {"clip": 0.0}, {"weight_decay": -1.0}):
        with pytest.raises(InvalidInput):
            Recipe(**wrong)  # type: ignore[arg-type]
    model = network(dtype="float32")
    trainer = Trainer(model, RECIPE)
    trainer.step(IDS[0])
    model.module.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(InvalidInput, match=r"loss must stay finite, update 1.*lower --rate"):
        trainer.step(IDS[1])
