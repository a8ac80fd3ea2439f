r"""What the attention of a real network does, per layer and head: sinks, the diagonal, entropy, how monotone it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import NotApplicable, invalid
from catenary.measure.checks import check_count, windows_record
from catenary.measure.feed import prepare
from catenary.measure.keep import Keep, unkept
from catenary.models.attention_call import AttentionCall
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.output_matrix import OutputMatrix, output_matrices
from catenary.models.top_down import pilot_calls
from catenary.models.undisturbed import undisturbed
from catenary.reading import align, number
from catenary.text.windows import Windows
from catenary.theory.rollout.control import TOLERANCE, Violations, monotonicity_violations

Heads = Float64[np.ndarray, "window layer head"]

LONGEST = 256
"""Tokens up to which violations of monotonicity are counted: the count compares all pairs of rows at every key."""

ROUNDINGS = 16
"""How many rounding errors of its own type a row's sum may be off: 2e-6 in float32, where a softmax is off by 1e-7."""


@dataclass(frozen=True, eq=False)
class AttentionStatistics:
    r"""Means over the queries of each window, per layer and head; axes (window, layer, head).

    Attributes:
        label: the words a legend shows.
        length: tokens L.
        sinks: 0-based positions whose mass is counted.
        sink: \(\frac1L\sum_i\sum_{j\in sinks}A_{ij}\).
        value_sink: \(\sum_i\sum_{j\in sinks}A_{ij}\nu_j / \sum_{ij}A_{ij}\nu_j\) with
            \(\nu_j = \|v_jW_O\|\): the sinks' share of what is written, by size; NaN in a layer whose output matrix
            was not found (``notes`` say so).
        diagonal: mean of A_ii.
        entropy: mean of \(-\sum_j A_{ij}\ln A_{ij}\), in nats.
        row_sum: mean of a row's sum; below 1 where a learned sink takes a part.
        violations: of the monotonicity of the head average, per layer, over the first window; empty if not asked for.
        notes: what else a reader must know.
        provenance: plain JSON values.
    """

    label: str
    length: int
    sinks: tuple[int, ...]
    sink: Heads
    value_sink: Heads
    diagonal: Heads
    entropy: Heads
    row_sum: Heads
    violations: tuple[Violations, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def records(self) -> list[dict[str, Any]]:
        """One flat record per layer and head, averaged over windows, for a table or CSV."""
        names = ("sink", "value_sink", "diagonal", "entropy", "row_sum")
        means = {name: getattr(self, name).mean(axis=0) for name in names}
        layers, heads = means["sink"].shape
        return [
            {"layer": t, "head": h, **{name: _finite(means[name][t, h]) for name in names}}
            for t in range(layers) for h in range(heads)
        ]

    def table(self) -> str:
        """One line per layer, averaged over heads and windows."""
        head = ("  layer", "mass on sinks", "by value", "diagonal", "entropy", "row sum", "violations")
        lines: list[tuple[str, ...]] = [head]
        for t in range(self.sink.shape[1]):
            parts = (self.sink, self.value_sink, self.diagonal, self.entropy, self.row_sum)
            rate = number(self.violations[t].rate) if self.violations else ""
            lines.append((f"  {t}", *(number(float(part[:, t].mean())) for part in parts), rate))
        return "\n".join([f"{self.label} (L = {self.length}, sinks {list(self.sinks)})", align(lines), *self.notes])

    def __repr__(self) -> str:
        """One line: label and mean mass on the sinks."""
        return f"AttentionStatistics({self.label!r}, mass on sinks {number(float(self.sink.mean()))})"


def measure_attention(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    sinks: Sequence[int] = (0,),
    monotonicity: bool = False,
    progress: Callable[[int, int], None] | None = None,
    keep: Keep = unkept,
) -> AttentionStatistics:
    """Sink mass, value-weighted sink mass, diagonal, entropy and row sums of every head; one forward pass per window.

    Weights are formed 64 queries at a time as the layers run, and dropped; no map is held unless the network's own
    code forms it (or ``monotonicity`` asks for the head average of one layer at a time).

    Args:
        model: from ``load``, or a transformers module you hold, left as found.
        windows: token windows, or their ids, without padding.
        sinks: distinct 0-based positions whose mass is counted.
        monotonicity: also count violations of monotonicity in the first window (L <= 256).
        progress: called after each window with (windows done, all).
        keep: stands between a window and its figures, to store them or to give what was stored.

    Raises:
        InvalidInput: bad arguments.
        NotApplicable: layers without softmax attention, or with several, or of unequal numbers of heads, by name.
    """
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    feed = prepare(held, given)
    for position in sinks:
        check_count("sinks", position, 0)
    if not sinks or len(set(sinks)) < len(sinks) or max(sinks) >= feed.length:
        raise invalid("sinks", f"must be distinct positions in 0..{feed.length - 1}", list(sinks))
    if monotonicity and feed.length > LONGEST:
        raise invalid("monotonicity", f"needs windows of at most {LONGEST} tokens", feed.length)
    found: list[Float64[np.ndarray, "layer _"]] = []
    with undisturbed(held.module), torch.no_grad():
        heads = sorted({call.heads for call in pilot_calls(held.anatomy)})
        if len(heads) > 1:
            raise NotApplicable(f"{held.label} has layers of {heads} heads; one table of heads needs equally many")
        matrices = output_matrices(held.anatomy)
        for index in range(len(given)):
            def figures(index: int = index) -> Float64[np.ndarray, "layer _"]:
                layers: list[Float64[np.ndarray, " _"]] = []

                def receive(call: AttentionCall) -> None:
                    layers.append(_layer(call, matrices.get(call.layer), sinks, monotonicity and index == 0))

                with attention_calls(held.anatomy, (1, feed.length), receive):
                    held.anatomy.stream(feed.vectors([index]), feed.mask([index]), feed.positions([index]))
                return np.array(layers)

            found.append(keep([index], figures))
            if progress is not None:
                progress(index + 1, len(given))
    without = [number for number in range(len(found[0])) if number not in matrices]
    figured = np.array(found)[..., : 5 * heads[0]].reshape(len(found), len(found[0]), 5, heads[0])
    sink, value_sink, diagonal, entropy, row_sum = (np.ascontiguousarray(figured[:, :, part]) for part in range(5))
    return AttentionStatistics(
        held.label, feed.length, tuple(int(position) for position in sinks),
        sink, value_sink, diagonal, entropy, row_sum,
        tuple(_violations(row[-4:].tolist()) for row in found[0]) if monotonicity else (),
        (f"no output matrix was found behind the attention of layers {without}",) if without else (),
        {"model": held.provenance(), "windows": windows_record(given, feed), "sinks": [int(p) for p in sinks]},
    )


def _layer(
    call: AttentionCall, matrix: OutputMatrix | None, sinks: Sequence[int], monotonicity: bool
) -> Float64[np.ndarray, " _"]:
    """One layer in one window: five figures of every head, and the four of violations (NaN where not counted)."""
    count = call.heads
    received = torch.zeros(count, call.length, dtype=torch.float64)
    diagonal, entropy = (torch.zeros(count, dtype=torch.float64) for _ in range(2))
    mean, rounding = np.zeros((call.length, call.length)) if monotonicity else None, 0.0
    for start, block in call.blocks():
        weights = block[0]
        stop = start + weights.shape[1]
        received[:, :stop] += weights.sum(dim=1).double().cpu()
        diagonal += weights[..., start:].diagonal(dim1=-2, dim2=-1).sum(-1).double().cpu()
        entropy += torch.special.entr(weights).sum((-2, -1)).double().cpu()
        if mean is not None:
            mean[start:stop, :stop] = weights.mean(0).double().cpu().numpy()
            rounding = float(torch.finfo(weights.dtype).eps)
    at = list(sinks)
    share = torch.full((count,), torch.nan, dtype=torch.float64)
    if matrix is not None and call.value is not None:
        written = received * matrix.sizes(call)[0].double().cpu()
        share = written[:, at].sum(-1) / written.sum(-1)
    violations: tuple[float, ...] = (np.nan,) * 4
    if mean is not None:
        # Whole rows sum to 1 up to the rounding of their own type; less than that is no violation.
        tolerance = max(TOLERANCE, ROUNDINGS * rounding)
        violations = astuple(monotonicity_violations(np.cumsum(mean, axis=1).T, tolerance))

    def mean_of(part: torch.Tensor) -> Float64[np.ndarray, " H"]:
        return np.asarray(part.numpy() / call.length)

    return np.concatenate([
        mean_of(received[:, at].sum(-1)), np.asarray(share.numpy()), mean_of(diagonal), mean_of(entropy),
        mean_of(received.sum(-1)), np.array(violations, dtype=np.float64),
    ])


def _violations(packed: list[float]) -> Violations:
    rate, size, relative, triples = packed
    return Violations(rate, size, relative, int(triples))


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
