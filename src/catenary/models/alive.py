"""Refuse a network with dead weights: it would give an all-zero or partial profile without a word."""

from __future__ import annotations

import re

from catenary.errors import InvalidInput
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.elsewhere import is_plain
from catenary.models.extra import torch
from catenary.models.stream import first_tensor, outputs_of, run
from catenary.models.undisturbed import undisturbed

ATTENTION = re.compile(r"attn|attention", re.IGNORECASE)
QUERY_OR_KEY = re.compile(r"(^|[._])(q|k|query|key)(_|[._]|$)", re.IGNORECASE)
NORM = re.compile(r"norm", re.IGNORECASE)
ADAPTER = re.compile(r"lora|adapter|conv", re.IGNORECASE)
"""Parts that may start at zero beside what they adapt; convolutions of values are added to the values."""


def check_alive(module: torch.nn.Module, anatomy: Anatomy) -> tuple[str, ...]:
    """Check every matrix, and return one note per dead part that still leaves a profile.

    A constant or non-finite embedding, value or output matrix is refused. Constant query, key or feed-forward
    matrices and layers of adapters initialised at zero are noted. Norms and biases start constant and are not read.
    A fused query-key-value matrix may hide a dead value slice, so each attention branch's output in a pilot run
    must also vary over tokens.

    Raises:
        InvalidInput: naming the parameter, or the branch, at fault.
    """
    notes = []
    for name, weight in anatomy.embedding.named_parameters():
        if _constant(weight):
            raise _dead(f"embedding.{name}", weight)
    paths = {id(part): name for name, part in module.named_modules()}
    for layer in anatomy.layers:
        for name, weight in layer.named_parameters():
            if not _constant(weight) or ADAPTER.search(name) or NORM.search(name):
                continue
            path = f"{paths[id(layer)]}.{name}"
            if ATTENTION.search(name) and not QUERY_OR_KEY.search(name):
                raise _dead(path, weight)
            what = "query or key matrix" if ATTENTION.search(name) else "feed-forward matrix"
            notes.append(f"{path} is constant: a dead {what}")
    _check_branches(module, anatomy, paths)
    return tuple(notes)


def _constant(weight: torch.Tensor) -> bool:
    """Whether a matrix has zero variance or holds NaN or inf; vectors and quantised weights are not judged."""
    if weight.ndim < 2 or not weight.is_floating_point() or weight.numel() < 2 or weight.is_meta:
        return False
    if not is_plain(weight):
        return False
    low, high = (float(bound) for bound in torch.aminmax(weight.detach()))
    return not (low < high < float("inf") and low > -float("inf"))


def _dead(path: str, weight: torch.Tensor) -> InvalidInput:
    value = float(weight.detach().flatten()[0])
    return InvalidInput(
        f"model must not have constant weights, got {path} = {value:g} everywhere (or NaN); "
        "its profile would be zero or partial. Load real weights, or initialise it with init_std > 0"
    )


def _check_branches(module: torch.nn.Module, anatomy: Anatomy, paths: dict[int, str]) -> None:
    """Refuse an attention branch whose output does not vary over coordinates, by running it."""
    branches = [
        child for layer in anatomy.layers for name, child in layer.named_children() if _is_attention(name, child)
    ]
    vectors = pilot_vectors(anatomy.embedding)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    with undisturbed(module), torch.no_grad(), outputs_of(branches, lambda _: True) as seen:
        run(anatomy.backbone, vectors, mask)
    for branch, output in seen:
        change = first_tensor(output).float().flatten(0, -2)  # one type puts positions before sequences
        if not float((change[1:] - change[:1]).abs().max()) > 0:
            raise InvalidInput(
                f"model must not have a dead branch, got {paths[id(branch)]}: its output is the same for every token "
                "(a constant value slice or output matrix). Load real weights, or initialise it with init_std > 0"
            )


def _is_attention(name: str, child: torch.nn.Module) -> bool:
    """An attention branch: named so, and not its norm."""
    return bool(ATTENTION.search(name)) and "norm" not in name.lower() and any(True for _ in child.children())
