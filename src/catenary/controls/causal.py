"""Whether the stream at a position has a gradient at later tokens, in the whole length."""

from __future__ import annotations

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject
from catenary.measure.feed import prepare
from catenary.models.anatomy import LEAK
from catenary.models.extra import torch
from catenary.models.undisturbed import undisturbed


def _check(subject: Subject) -> Check:
    model = subject.model
    feed = prepare(model, subject.first_windows(1))
    at = feed.length // 2
    vectors, mask = feed.vectors([0]).requires_grad_(True), feed.mask([0])
    with undisturbed(model.module):
        stream = model.anatomy.stream(vectors.clone(), mask)[0, at]
        cotangent = torch.linspace(-1, 2, stream.shape[-1]).to(stream)
        (gradient,) = torch.autograd.grad(stream, vectors, cotangent)
    size = gradient[0].double().norm(dim=-1)
    leak = float(size[at + 1 :].max() / size[: at + 1].max())
    amount = "exactly 0" if leak == 0 else f"{leak:.2g} of the largest before"
    said = f"the gradient of the stream at position {at} with respect to later tokens is {amount}"
    said += "" if leak <= LEAK else ". Later tokens leak into earlier ones: no profile of this network means anything"
    return judge(NAME, leak <= LEAK, said, leak=leak, position=at)


NAME = "causal"
CAUSAL = Control(NAME, "No position depends on later tokens.", _check, few=1)
