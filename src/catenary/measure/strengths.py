"""Mixing strengths of a real network: what each branch of each layer adds to the residual stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import NotApplicable, invalid
from catenary.measure.feed import Feed, prepare
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.residual import Addition, additions
from catenary.models.undisturbed import undisturbed
from catenary.strengths import BRANCHES, Branch, Strength, Strengths
from catenary.text.windows import Windows


def measure_strengths(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    attention_mask: Int[np.ndarray, "n T"] | None = None,
    batch_size: int = 1,
) -> Strengths:
    r"""Mean over tokens and windows of \(\|b\|/(\|x\|+\|b\|)\) for each branch b, x the stream it is added to.

    b is what is added: behind its own norm, factors included; x is what is kept of the stream. For a pre-norm layer x
    is the layer's input and b the output of its attention module, as in the published code of arXiv 2602.16837, which
    leaves the feed-forward branch out. The mean is of ratios, token by token. Norms are taken in float32.

    Args:
        model: any decoder with softmax attention, from ``load`` or a transformers module you hold; left as found.
        windows: document windows, their ids, or Gaussian vectors for an untrained network.
        attention_mask: as ``measure_jacobian`` takes it; padding is left out of the means.
        batch_size: windows per forward pass, >= 1.

    Raises:
        InvalidInput: as ``prepare``.
        NotApplicable: a layer that is not its stream plus branches, or no layer with softmax attention.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise invalid("batch_size", "must be a whole number >= 1", batch_size)
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    feed = prepare(held, given, attention_mask)
    parts: list[list[_Seen]] = []
    left_out: set[int] = set()
    for start in range(0, len(given), batch_size):
        rows = list(range(start, min(start + batch_size, len(given))))
        parts.append(_run(feed, rows, left_out))
    if not parts[0]:
        raise NotApplicable(f"{held.label} has no layer with softmax attention, so it has no mixing strengths")
    seen = [_joined(column) for column in zip(*parts, strict=True)]
    statements = []
    if left_out:
        layers = ", ".join(map(str, sorted(left_out)))
        statements.append(f"Layers without softmax attention are left out: {layers} (0-based).")
    return Strengths(
        f"{held.label}, {given.kind}",
        feed.length,
        tuple(part.strength() for part in seen),
        _sum_errors(seen),
        tuple(statements),
        {"model": held.provenance(), "windows": {"kind": given.kind, "count": len(given), "seed": given.seed}},
    )


@dataclass(frozen=True, eq=False)
class _Seen:
    """One branch on some windows: rms of stream and branch per token."""

    layer: int
    branch: Branch
    stream: Float64[np.ndarray, "n L"]
    added: Float64[np.ndarray, "n L"]

    @property
    def ratios(self) -> Float64[np.ndarray, "n L"]:
        """lambda per token; 0 where nothing is added to nothing."""
        total = self.stream + self.added
        return np.asarray(np.divide(self.added, total, out=np.zeros_like(total), where=total > 0))

    def strength(self) -> Strength:
        """The means over tokens and windows."""
        ratios, squares = self.ratios, self.stream**2 + self.added**2
        energy = np.divide(self.added**2, squares, out=np.zeros_like(squares), where=squares > 0)
        return Strength(
            self.layer,
            self.branch,
            float(ratios.mean()),
            float(energy.mean()),
            float((self.stream**2).mean() ** 0.5),
            float((self.added**2).mean() ** 0.5),
            float(ratios.std()),
            standard_error(ratios.mean(axis=1)),
        )


def _run(feed: Feed, rows: list[int], left_out: set[int]) -> list[_Seen]:
    """One forward pass over some windows."""
    model, real = feed.model, feed.real[rows]
    vectors = feed.vectors(rows)
    found: list[_Seen] = []

    def tokens(sizes: torch.Tensor) -> Float64[np.ndarray, "n L"]:
        return np.asarray(sizes.double().cpu().numpy()[real].reshape(len(rows), feed.length))

    def receive(addition: Addition) -> None:
        found.append(_Seen(addition.layer, addition.branch, tokens(addition.stream), tokens(addition.added)))

    with undisturbed(model.module), torch.no_grad(), additions(model.anatomy, real.shape, receive) as without:
        model.anatomy.stream(vectors, feed.mask(rows), feed.positions(rows))
    left_out |= without
    return found


def _joined(parts: tuple[_Seen, ...]) -> _Seen:
    return _Seen(
        parts[0].layer,
        parts[0].branch,
        np.concatenate([part.stream for part in parts]),
        np.concatenate([part.added for part in parts]),
    )


def _sum_errors(seen: list[_Seen]) -> dict[str, float]:
    """Standard error over windows of the sum over layers, which share their windows."""
    errors: dict[str, float] = {}
    for branch in BRANCHES:
        sums = sum((part.ratios.mean(axis=1) for part in seen if part.branch == branch), np.zeros(1))
        error = standard_error(np.atleast_1d(sums))
        if error is not None:
            errors[branch] = error
    return errors


def standard_error(values: Float64[np.ndarray, " n"]) -> float | None:
    """Of the mean of ``values``; None where there is one alone."""
    return None if values.size < 2 else float(values.std(ddof=1) / np.sqrt(values.size))
