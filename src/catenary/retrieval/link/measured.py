r"""What one prompt shows at its last token: three gradients and the attention by slot, from one forward pass.

With h the stream in front of the final norm at the last prompt token, e_j the embedded tokens, z the logit and p the
probability of the answer's first token, the gradients are \(\partial h/\partial e_j\) (one Gaussian probe),
\(\partial z/\partial e_j\) and \(\partial\log p/\partial e_j\). The last is small where the model is sure, since
\(\partial\log p=\sum_k(\delta_{ak}-p_k)\,\partial z_k\to0\) as \(p_a\to1\).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture
from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.ends import _logits
from catenary.measure.feed import Feed, prepare
from catenary.measure.probes import cotangent
from catenary.models.attention_call import AttentionCall
from catenary.models.attention_calls import attention_calls
from catenary.models.banded import banded
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.stream import inputs_of
from catenary.models.undisturbed import undisturbed
from catenary.retrieval.link.prompt import LinkPrompt, root_summed, summed
from catenary.retrieval.link.readings import Readings
from catenary.text.windows import Windows


def read_prompt(
    model: Model, prompt: LinkPrompt, *, seed: int = 0, sample: int = 0, birth: bool = True
) -> Readings:
    """All rows of one prompt; the model is left as it was found.

    Args:
        model: a network with its weights.
        prompt: from ``make_prompt``.
        seed: of the probe.
        sample: the prompt's number; each has a probe of its own.
        birth: also predict the birth profile for the prompt's tokens; without it that row is all NaN.

    Raises:
        InvalidInput: a prompt that the network cannot take, or gradients that are not finite.
        NotApplicable: a network that gives no logits.
    """
    feed = prepare(model, Windows(prompt.ids[None]))
    mass = _Mass(len(prompt.ids))
    spans = prompt.spans
    with undisturbed(model.module), banded():
        leaf = feed.vectors([0]).requires_grad_(True)
        stream, logits, refused = _forward(model, feed, leaf, mass)
        wide = logits if logits.dtype == torch.float64 else logits.float()
        probe = torch.from_numpy(cotangent(stream.shape[-1], seed=seed, net=0, sequence=sample, probe=0))
        jacobian = _squares(leaf, stream, probe.to(stream.dtype).to(stream.device))
        logit = _squares(leaf, wide[prompt.answer])
        logp = _squares(leaf, wide.log_softmax(-1)[prompt.answer])
        size = leaf.detach()[0].double().square().sum(-1).cpu().numpy()
    rows = {
        "jacobian": root_summed(jacobian, spans), "relative": root_summed(jacobian * size, spans),
        "logit": root_summed(logit, spans), "logp": root_summed(logp, spans),
    }  # fmt: skip
    missing = {}
    if mass.heads:
        rows["attention"] = summed(mass.total / mass.heads, spans)
    else:
        missing["attention"] = refused or "no layer has a softmax attention"
    born = birth_squares(model.architecture, prompt) if birth else np.full(len(prompt.ids), np.nan)
    if isinstance(born, str):
        missing["birth"] = born
    else:
        rows["birth"] = root_summed(born, spans)
    return Readings(rows, missing)


def birth_squares(architecture: Architecture | None, prompt: LinkPrompt) -> Float64[np.ndarray, " L"] | str:
    """rho_j^2 of the birth law for the prompt's own tokens, or why there is none."""
    from catenary.theory.prediction import predict

    if architecture is None:
        return "theory does not describe this family"
    try:
        return np.asarray(predict(architecture, length=len(prompt.ids), ids=prompt.ids).values ** 2)
    except InvalidInput as reason:
        return str(reason)


@dataclass
class _Mass:
    """Attention of the last token, summed over layers and heads."""

    length: int
    heads: int = 0
    total: Any = 0.0

    def receive(self, call: AttentionCall) -> None:
        row = call.seen(self.length - 1, self.length)[0, :, 0]
        self.heads += len(row)
        self.total = self.total + row.double().sum(0).cpu().numpy()


def _forward(
    model: Model, feed: Feed, leaf: torch.Tensor, mass: _Mass
) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Stream and logits at the last token, and why the attention was not seen, if it was not."""
    at, mask = np.array([[feed.length - 1]]), feed.mask([0])
    norm = model.anatomy.final_norm
    found: list[torch.Tensor] = []
    try:
        with attention_calls(model.anatomy, (1, feed.length), mass.receive):
            fed = leaf.clone()  # one model type writes into its input, which autograd refuses on a leaf
            if norm is None:
                found = [model.anatomy.stream(fed, mask)[0, -1]]
                mass.heads, mass.total = 0, 0.0  # the pass for the logits shows the same attention again
                found.append(_logits(model, fed, mask, None, at)[0, 0])
            else:
                with inputs_of(norm) as seen:
                    logits = _logits(model, fed, mask, None, at)[0, 0]
                found = [seen[-1][0, -1], logits]
    except NotApplicable as reason:
        if len(found) < 2:
            raise
        mass.heads = 0
        return found[0], found[1], str(reason)
    return found[0], found[1], ""


def _squares(leaf: torch.Tensor, out: torch.Tensor, vector: torch.Tensor | None = None) -> Float64[np.ndarray, " L"]:
    """Squared norm of the gradient at every token."""
    (gradient,) = torch.autograd.grad(out, leaf, vector, retain_graph=True)
    found = gradient[0].detach().cpu().double().square().sum(-1).numpy()
    if not np.isfinite(found).all():
        raise invalid("model", "must give finite gradients", "NaN or inf", "use dtype='float32'")
    return np.asarray(found, dtype=np.float64)
