"""What is differentiated with respect to what: output at some positions, input in front of some layer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int64

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.aim import Aim
from catenary.measure.feed import Feed
from catenary.measure.methods import ANSWER, METHODS, Method
from catenary.models.anatomy import embed_some
from catenary.models.between import leaf_at, stop_at
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.stream import accepts

EMBEDDED_ROWS = 4096
"""Embedded tokens over which the size of an input is taken; their rms has a relative error below 1/sqrt(4096 d)."""


@dataclass(frozen=True)
class Ends:
    """The two ends of a Jacobian: an aim, and one answer token per window where the output is an answer.

    Layers are counted as called: the stream at l is what enters layer l, and at the depth what leaves the last.
    """

    aim: Aim
    answers: tuple[int, ...] | None = None

    def method(self, name: str) -> Method:
        """The method's cotangents; an answer's log-probability is one scalar and needs one pass."""
        return ANSWER if self.aim.kind == "answer" else METHODS[name]

    def width(self, model: Model) -> int:
        """Size of the output at one position."""
        return int(model.embedding_weight.shape[0]) if self.aim.kind == "logits" else model.width

    def forward(
        self, feed: Feed, batch: Sequence[int], at: Int64[np.ndarray, "n P"]
    ) -> tuple[Float[torch.Tensor, "n T d_in"], Float[torch.Tensor, "n P d_out"]]:
        """One forward pass with a graph: the leaf, and the output at some columns of each row."""
        model = feed.model
        vectors, mask, positions = feed.vectors(batch), feed.mask(batch), feed.positions(batch)
        with ExitStack() as stack:
            if self.aim.source_layer is None:
                leaves = [vectors.requires_grad_(True)]
            else:
                leaves = stack.enter_context(leaf_at(model.anatomy, self.aim.source_layer))
            fed = vectors.clone()  # one model type writes into its input, which autograd refuses on a leaf
            if self.aim.kind == "stream":
                def run() -> torch.Tensor:
                    return model.anatomy.stream(fed, mask, positions)

                whole = run() if self.aim.target_layer is None else stop_at(model.anatomy, self.aim.target_layer, run)
                values = _columns(whole, at)
            else:
                values = _logits(model, fed, mask, positions, at)
        if self.answers is not None:
            ids = torch.tensor([self.answers[row] for row in batch], device=values.device)
            chosen = torch.log_softmax(values.float() if values.dtype != torch.float64 else values, dim=-1)
            values = chosen.gather(-1, ids[:, None, None].expand(-1, values.shape[1], 1))
        return leaves[0], values

    def scale(
        self, feed: Feed, leaf: Float[torch.Tensor, "n T d_in"], batch: Sequence[int]
    ) -> Float64[np.ndarray, " n"]:
        """What energies are multiplied by: 1, or the mean square of one entry of what enters.

        At the embeddings it is one number for a network, nominal for an untrained one of a described family; at a
        layer it is the mean square of the stream over each window's tokens.
        """
        if not self.aim.relative:
            return np.ones(len(batch))
        model = feed.model
        if self.aim.source_layer is None:
            if model.weights == "untrained" and model.architecture is not None:
                return np.full(len(batch), model.embedding_std**2)
            rows = embed_some(model.anatomy.embedding, EMBEDDED_ROWS)
            return np.full(len(batch), float(rows.cpu().double().square().mean()))
        squares = leaf.detach().cpu().double().square().mean(-1).numpy()
        return np.array([squares[i][feed.real[row]].mean() for i, row in enumerate(batch)])


def check_aim(feed: Feed, aim: Aim) -> Ends:
    """The ends of an aim, checked against the network and the windows."""
    depth = len(feed.model.anatomy.layers)
    source, target = aim.source_layer, aim.target_layer
    for name, value, low, high in (("source_layer", source, 0, depth - 1), ("target_layer", target, 1, depth)):
        if value is not None and not (isinstance(value, int) and low <= value <= high):
            raise invalid(name, f"must be in {low}..{high} for {depth} layers", value)
    if target is not None and target <= (-1 if source is None else source):
        raise invalid("target_layer", f"must lie behind source_layer {source}", target)
    if aim.kind != "stream" and target is not None:
        raise invalid("target_layer", "is for output 'stream', since logits come after all layers", target)
    return Ends(aim, None if isinstance(aim.output, str) else _answers(feed, aim.output))


def _answers(feed: Feed, output: int | Sequence[int]) -> tuple[int, ...]:
    count, rows = len(feed.windows), int(feed.model.embedding_weight.shape[0])
    ids = [int(output)] * count if isinstance(output, int | np.integer) else [int(token) for token in output]
    if len(ids) != count:
        raise invalid("output", f"must be one token id, or one for each of the {count} windows", f"{len(ids)} ids")
    if not all(0 <= token < rows for token in ids):
        raise invalid("output", f"must be token ids in 0..{rows - 1}", ids)
    return tuple(ids)


def chosen_positions(positions: Sequence[int], length: int) -> list[int]:
    """Distinct output positions, counted from 0, or from the end when negative."""
    found = []
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int | np.integer) or not -length <= position < length:
            raise invalid("position", f"must be an integer in {-length}..{length - 1}", position)
        found.append(int(position) % length)
    if not found or len(set(found)) < len(found):
        raise invalid("positions", "must be distinct, and at least one", list(positions))
    return found


def _columns(whole: Float[torch.Tensor, "n T d"], at: Int64[np.ndarray, "n P"]) -> Float[torch.Tensor, "n P d"]:
    row = torch.arange(len(at), device=whole.device)[:, None]
    return whole[row, torch.from_numpy(at).to(whole.device)]


def _logits(
    model: Model, fed: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor | None, at: Int64[np.ndarray, "n P"]
) -> Float[torch.Tensor, "n P M"]:
    """Logits at some columns, without those of all others where the network can leave them out."""
    kept, inverse = np.unique(at, return_inverse=True)
    options: dict[str, Any] = {
        "attention_mask": mask, "position_ids": positions, "use_cache": False, "return_dict": True,
        "logits_to_keep": torch.from_numpy(kept).to(fed.device),
    }
    module = model.module
    known = {name: value for name, value in options.items() if value is not None and accepts(module, name)}
    if not accepts(module, "inputs_embeds"):
        raise NotApplicable(f"{type(module).__name__} takes no inputs_embeds, so its logits can't be differentiated")
    logits = getattr(module(inputs_embeds=fed, **known), "logits", None)
    if not isinstance(logits, torch.Tensor) or logits.ndim != 3:
        raise NotApplicable(f"{type(module).__name__} gives no logits over a vocabulary; load it as a language model")
    if logits.shape[1] == len(kept):
        return _columns(logits, inverse.reshape(at.shape))
    if logits.shape[1] != fed.shape[1]:
        raise InvalidInput(f"model must give one row of logits per position, got {logits.shape[1]} of {fed.shape[1]}")
    return _columns(logits, at)
