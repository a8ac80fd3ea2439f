"""Measure how much each position's input moves the last position's stream: the Jacobian profile of one network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.feed import Feed, prepare
from catenary.measure.methods import METHODS, Draw, Method
from catenary.measure.precision import PILOT_PROBES, effective_rank, precision, probes_for
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.recompute import recomputing
from catenary.models.rope import is_rotary_off
from catenary.models.undisturbed import undisturbed
from catenary.sample import Sample
from catenary.text.windows import Windows

Progress = Callable[[int, int], None]
"""Called after every backward pass with (passes done, passes in all)."""


def measure_jacobian(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    probes: int = 8,
    seed: int = 0,
    method: str = "probes",
    batch_size: int = 1,
    target_error: float | None = None,
    progress: Progress | None = None,
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    recompute: bool = False,
) -> Sample:
    r"""Energies \(\|J_j^T v\|^2\) of every position j, window and probe, for one network.

    \(J_j = \partial h_L / \partial e_j\), with h the stream in front of the final norm and e the embedded tokens.
    For \(v \sim N(0, I)\), \(E\|J_j^T v\|^2 = \|J_j\|_F^2\). One forward pass is shared by the K backward passes, which
    go to the inputs only. Energies are float64, (1, 1, 1, n, K, L), in units of a squared Jacobian norm.

    Args:
        model: from ``load``, or a transformers module you hold, which is never moved or cast and is left as found.
        windows: token windows, or their ids.
        probes: K, the cotangents per window. The relative error of a norm is 1/sqrt(2Kr), see ``precision``.
        seed: of the probes. Each is a function of (seed, network seed, window index, probe index) alone.
        method: ``probes``; ``exact`` (all d basis cotangents, K = 1 entry without probe error); ``scalar`` (the
            gradient of ||h_L||, its own quantity).
        batch_size: windows per forward pass. Results agree over batch sizes up to rounding.
        target_error: relative error of one norm to reach; a pilot of 4 probes on the first window sets K. For
            untrained networks, since for trained ones the spread over windows is the larger error.
        progress: called after each backward pass with (done, all).
        sequences: which windows to measure, all if None. A part gives the same numbers as the whole.
        attention_mask: 1 on tokens, 0 on padding, rows with equally many tokens. The profile is over tokens only.
        recompute: keep only the inputs of each layer and run it again in every backward pass, see ``recomputing``:
            the same numbers with less memory, in 1 + 2K passes per window in place of 1 + K.

    Raises:
        InvalidInput: bad arguments, ids outside the vocabulary, windows too long, NaN or inf in the network.
        NotApplicable: Gaussian vectors or ``target_error`` for trained weights, a network that is not causal, or
            ``recompute`` for one that cannot run a layer again.

    Source: quantity derived here; ``scalar`` after arXiv 2603.10123.
    """
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    chosen = METHODS[method]
    _positive("probes", probes)
    _positive("batch_size", batch_size)
    _seed(seed)
    feed = prepare(held, given, attention_mask)
    rows = _rows(sequences, len(given))
    if target_error is not None:
        probes = _probes_for_target(feed, chosen, seed, rows[0], target_error)
    run = _Run(feed, chosen, seed, probes, recompute)
    energy = run.energies(rows, batch_size, progress)
    return Sample(
        energy[None, None, None],
        (given.kind,),
        quantity=chosen.quantity,
        label=held.label,
        exact=chosen.summed,
        provenance={
            "model": held.provenance(),
            "windows": _windows_record(given, feed),
            "measurement": {
                "method": method, "probes": energy.shape[1], "seed": seed, "batch_size": batch_size,
                "sequences": rows, "target_error": target_error,
                "embedding_std": held.embedding_std,
                "precision": precision(energy, exact=chosen.summed).to_dict(),
            },
        },
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """One method with its probes on one feed."""

    feed: Feed
    method: Method
    seed: int
    probes: int
    recompute: bool = False

    def energies(
        self, rows: Sequence[int], batch_size: int, progress: Progress | None = None
    ) -> Float64[np.ndarray, "n K L"]:
        """Energies of some windows, in their order."""
        batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        per_batch = self.method.passes(self.feed.model.width, self.probes)
        parts = []
        for number, batch in enumerate(batches):
            def report(done: int, before: int = number * per_batch) -> None:
                if progress is not None:
                    progress(before + done, len(batches) * per_batch)

            parts.append(self._batch(batch, report))
        return np.concatenate(parts)

    def _batch(self, batch: Sequence[int], report: Callable[[int], None]) -> Float64[np.ndarray, "n K L"]:
        model, feed = self.feed.model, self.feed
        real = feed.real[list(batch)]
        total = np.zeros((len(batch), 1, feed.length))
        kept: list[Float64[np.ndarray, "n L"]] = []
        again = recomputing(model.anatomy) if self.recompute else nullcontext()
        with undisturbed(model.module), again:
            leaf = feed.vectors(batch).requires_grad_(True)
            # One model type writes into its input, which autograd refuses on a leaf.
            stream = model.anatomy.stream(leaf.clone(), feed.mask(batch), feed.positions(batch))
            _check_state(model, stream, batch)
            row = torch.arange(len(batch), device=stream.device)
            last = stream[row, torch.from_numpy(feed.last(batch)).to(stream.device)]
            draw = Draw(self.seed, model.seed or 0, batch, self.probes)
            for done, vector in enumerate(self.method.cotangents(last, draw), start=1):
                (gradient,) = torch.autograd.grad(last, leaf, vector, retain_graph=True)
                energy = _squared_norm(gradient)[real].reshape(len(batch), feed.length)
                if self.method.summed:
                    total[:, 0] += energy
                else:
                    kept.append(energy)
                report(done)
        result = total if self.method.summed else np.stack(kept, axis=1)
        if not np.isfinite(result).all():
            raise invalid("model", "must give finite gradients", "NaN or inf", "use dtype='float32'")
        return result


def _squared_norm(gradient: torch.Tensor) -> Float64[np.ndarray, "n T"]:
    """Squared norms over the last axis, accumulated in float64 (on the CPU where the device has no float64)."""
    here = gradient.cpu() if gradient.device.type == "mps" else gradient
    return np.asarray(torch.linalg.vector_norm(here, dim=-1, dtype=torch.float64).square().cpu())


def _check_state(model: Model, stream: torch.Tensor, batch: Sequence[int]) -> None:
    finite = torch.isfinite(stream).flatten(1).all(1).tolist()
    if not all(finite):
        raise invalid(
            "model", f"must give finite hidden states in window {batch[finite.index(False)]}", "NaN or inf",
            "use dtype='float32', or look at the weights",
        )
    if not model.rope and not is_rotary_off(model.module):
        raise NotApplicable(
            f"rope=False does not hold for {model.name!r} at this length: it sets its rotary frequencies again"
        )


def _probes_for_target(feed: Feed, method: Method, seed: int, row: int, target_error: float) -> int:
    """K that reaches the target, from a pilot on one window."""
    if method.name != "probes":
        raise invalid("target_error", "applies to method 'probes'", target_error, f"leave it out with {method.name!r}")
    if feed.model.weights != "untrained":
        raise NotApplicable(
            f"target_error picks probes for untrained networks, got {feed.model.label!r} ({feed.model.weights}); for a "
            "trained network the spread over windows is the larger error: give more windows with probes=1"
        )
    rank = effective_rank(_Run(feed, method, seed, PILOT_PROBES).energies([row], 1))
    if rank is None:
        raise InvalidInput("target_error must be reachable by probes, but the pilot's probes all agree; set probes")
    needed = probes_for(target_error, rank)
    if needed >= feed.model.width:
        raise invalid(
            "target_error", f"must be reachable with fewer probes than the width {feed.model.width}", target_error,
            f"it needs {needed}; method='exact' has no probe error and costs {feed.model.width}",
        )
    return needed


def _rows(sequences: Sequence[int] | None, count: int) -> list[int]:
    rows = list(range(count)) if sequences is None else [int(index) for index in sequences]
    if not rows or any(not 0 <= index < count for index in rows) or len(set(rows)) < len(rows):
        raise invalid("sequences", f"must be distinct window indices in 0..{count - 1}", rows)
    return rows


def _positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise invalid(name, "must be an integer >= 1", value)


def _seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise invalid("seed", "must be an integer >= 0", seed)


def _windows_record(windows: Windows, feed: Feed) -> dict[str, Any]:
    return {
        "kind": windows.kind,
        "vectors": windows.vectors,
        "seed": windows.seed,
        "count": len(windows),
        "length": feed.length,
        "padded": feed.padded,
        "ids_sha256": hashlib.sha256(np.ascontiguousarray(windows.ids).tobytes()).hexdigest(),
        "report": dict(windows.report),
    }
