"""Forward and backward passes of one measurement: energies of every window, probe and input position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.measure.checks import check_state
from catenary.measure.ends import Ends
from catenary.measure.feed import Feed
from catenary.measure.methods import Draw, Method
from catenary.models.banded import banded
from catenary.models.extra import torch
from catenary.models.recompute import recomputing
from catenary.models.undisturbed import undisturbed

Progress = Callable[[int, int], None]
"""Called after every backward pass with (passes done, passes in all)."""

Energies = list[Float64[np.ndarray, "n K P"]]
"""One array per output position p, over the p + 1 positions it can see."""


@dataclass(frozen=True, eq=False)
class Passes:
    """One method with its probes and output positions on one feed."""

    feed: Feed
    method: Method
    ends: Ends
    seed: int
    probes: int
    positions: Sequence[int]
    recompute: bool = False

    def energies(self, rows: Sequence[int], batch_size: int, progress: Progress | None = None) -> Energies:
        """Energies of some windows, in their order, for every output position."""
        batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        width = self.ends.width(self.feed.model)
        per_batch = self.method.passes(width, self.probes) * len(self.positions)
        parts = []
        for number, batch in enumerate(batches):
            def report(done: int, before: int = number * per_batch) -> None:
                if progress is not None:
                    progress(before + done, len(batches) * per_batch)

            parts.append(self._batch(batch, report))
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _batch(self, batch: Sequence[int], report: Callable[[int], None]) -> Energies:
        model, feed = self.feed.model, self.feed
        again = recomputing(model.anatomy, self.ends.aim.target_layer) if self.recompute else nullcontext()
        at = np.stack([feed.columns(batch, position) for position in self.positions], axis=1)
        results: Energies = []
        done = 0
        with undisturbed(model.module), again, banded():
            leaf, values = self.ends.forward(feed, batch, at)
            check_state(model, values, batch)
            draw = Draw(self.seed, model.seed or 0, batch, self.probes)
            scale = self.ends.scale(feed, leaf, batch)[:, None]
            for index, position in enumerate(self.positions):
                out = values[:, index]
                total, kept = np.zeros((len(batch), feed.length)), []
                for vector in self.method.cotangents(out, draw):
                    (gradient,) = torch.autograd.grad(out, leaf, vector, retain_graph=True)
                    energy = scale * _squared_norm(gradient)[feed.real[list(batch)]].reshape(len(batch), feed.length)
                    if self.method.summed:
                        total += energy
                    else:
                        kept.append(energy)
                    done += 1
                    report(done)
                found = total[:, None] if self.method.summed else np.stack(kept, axis=1)
                if not np.isfinite(found).all():
                    raise invalid("model", "must give finite gradients", "NaN or inf", "use dtype='float32'")
                results.append(found[..., : position + 1])
        return results


def _squared_norm(gradient: torch.Tensor) -> Float64[np.ndarray, "n T"]:
    """Squared norms over the last axis, accumulated in float64 (on the CPU where the device has no float64)."""
    here = gradient.cpu() if gradient.device.type == "mps" else gradient
    return np.asarray(torch.linalg.vector_norm(here, dim=-1, dtype=torch.float64).square().cpu())
