r"""The residual-aware rollout of a real network: one row of the product of its own attention, carried from the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import NotApplicable, invalid
from catenary.measure.checks import check_count, chosen_rows, windows_record
from catenary.measure.feed import Feed, prepare
from catenary.measure.keep import Keep, unkept
from catenary.measure.strengths import measure_strengths
from catenary.models.attention_call import BLOCK, AttentionCall
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.top_down import calls_top_down, pilot_calls
from catenary.models.undisturbed import undisturbed
from catenary.quantity import ATTENTION_ROLLOUT
from catenary.sample import Sample
from catenary.text.windows import Windows
from catenary.theory.rollout.published import departures
from catenary.theory.rollout.schedules import Given, Schedule, read_schedule

HeadWeights = Sequence[float] | Sequence[Sequence[float]] | Float64[np.ndarray, " *shape"]
"""One number >= 0 per head, or layers x heads."""

Shares = Float64[np.ndarray, " _"]


def measure_rollout(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    schedule: Schedule | float | str | Sequence[float] = "measured",
    query: int | None = None,
    head_weights: HeadWeights | None = None,
    compat: str | None = None,
    batch_size: int = 1,
    progress: Callable[[int, int], None] | None = None,
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    keep: Keep = unkept,
) -> Sample:
    r"""Row ``query`` of \(P = R_{T-1}\cdots R_0\), \(R_t = (1-\lambda_t)I + \lambda_t\sum_h w_{th}A_{th}\), per window.

    A is the attention that the network computes, positions and content alike: nothing is added to it. The row v
    starts at e_q and goes \(v \leftarrow R_t^\top v\) from the top layer down; weights are formed 64 queries at a
    time, and no L x L matrix is held unless the network's own code forms it. The rows come as a Sample, whose
    ``profile("mean")`` is their mean (its energies are squares of the row).

    Args:
        model: from ``load``, or a transformers module you hold, left as found.
        windows: token windows, or their ids.
        schedule: strengths \(\lambda_t\): ``measured`` (``measure_strengths`` over all the windows), or as
            ``read_schedule`` takes it; 1 is attention alone.
        query: 0-based position of the row, the last if None.
        head_weights: weights of the heads' average, per head or layers x heads; uniform if None.
        compat: departures of the published code, as in the theory ``rollout``; ``clipped-strengths`` applies here.
        batch_size: windows per forward pass.
        progress: called after each batch with (windows done, all).
        sequences: which windows, all if None; strengths are still measured on all.
        attention_mask: 1 on tokens, 0 on padding; the row is over tokens only.
        keep: stands between a batch of windows and its rows, to store them or to give what was stored.

    Raises:
        InvalidInput: bad arguments, or a network that gives NaN.
        NotApplicable: layers without softmax attention, or with several, by name.

    Source: arXiv 2602.16837, with the network's own attention in place of priors.
    """
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    check_count("batch_size", batch_size)
    clip = "clipped-strengths" in departures(compat)
    feed = prepare(held, given, attention_mask)
    rows = chosen_rows(sequences, len(given))
    last = _query(query, feed.length)
    shares = _shares(head_weights, attention_heads(held))
    if isinstance(schedule, str) and schedule == "measured":
        measured = measure_strengths(held, given, attention_mask=attention_mask, batch_size=batch_size)
        schedule = Given(measured.values(), "measured")
    chosen = read_schedule(schedule)
    strengths = chosen.strengths(len(shares), clip)
    parts = []
    for start in range(0, len(rows), batch_size):
        batch = rows[start : start + batch_size]
        parts.append(keep(batch, partial(_rollout, feed, batch, strengths, shares, last)))
        if progress is not None:
            progress(start + len(batch), len(rows))
    values = np.concatenate(parts)
    return Sample(
        (values**2)[None, None, None, :, None],
        (given.kind,),
        quantity=ATTENTION_ROLLOUT,
        label=f"rollout of {held.label}, {chosen.words}",
        exact=True,
        provenance={
            "model": held.provenance(),
            "windows": windows_record(given, feed),
            "rollout": {
                "schedule": strengths.tolist(), "strengths": chosen.words, "query": last, "compat": compat,
                "head_weights": None if head_weights is None else np.array(shares).tolist(), "sequences": rows,
                "sums": values.sum(axis=1).tolist(),
            },
        },
    )


def _rollout(
    feed: Feed, batch: Sequence[int], strengths: Float64[np.ndarray, " layers"],
    shares: list[Shares], query: int,
) -> Float64[np.ndarray, "n L"]:
    model = feed.model
    real = feed.real[list(batch)]
    row = torch.zeros(real.shape, dtype=torch.float64)
    starts = torch.from_numpy(real.argmax(axis=1))
    row[torch.arange(len(batch)), starts + query] = 1.0
    number = len(strengths)
    with undisturbed(model.module):
        for call in calls_top_down(model.anatomy, feed.vectors(batch), feed.mask(batch), feed.positions(batch)):
            number -= 1
            carried = adjoint(call, row, torch.from_numpy(shares[number]))
            row = (1 - strengths[number]) * row + strengths[number] * carried
    if not torch.isfinite(row).all():
        raise invalid("model", "must give finite attention weights", "NaN or inf", "use dtype='float32'")
    return np.asarray(row.numpy()[real].reshape(len(batch), feed.length))


def adjoint(
    call: AttentionCall, row: Float64[torch.Tensor, "n L"], shares: Float64[torch.Tensor, " H"]
) -> Float64[torch.Tensor, "n L"]:
    r"""\(\sum_h w_h A_h^\top v\): what the queries of weight v give to each key, accumulated in float64."""
    result = torch.zeros_like(row)
    for start in range(0, call.length, BLOCK):
        stop = min(start + BLOCK, call.length)
        part = row[:, start:stop]
        if not bool(part.any()):
            continue
        weights = call.seen(start, stop)
        size = part.amax()  # deep rows of attention alone fall below the smallest float32
        factors = (shares[:, None] * (part / size)[:, None]).to(weights)
        result[:, :stop] += size * torch.einsum("nhq,nhqk->nk", factors, weights).to(result)
    return result


def attention_heads(model: Model) -> list[int]:
    """Heads of each layer's attention, from the bottom."""
    with undisturbed(model.module):
        return [call.heads for call in pilot_calls(model.anatomy)]


def _shares(given: HeadWeights | None, heads: list[int]) -> list[Shares]:
    """Weights of the heads in each layer, summing to 1."""
    if given is None:
        return [np.full(count, 1 / count) for count in heads]
    if len(set(heads)) > 1:
        raise NotApplicable(f"head_weights need layers of equally many heads, got {sorted(set(heads))}")
    rule = f"must be {heads[0]} numbers >= 0, or {len(heads)} x {heads[0]} of them, not all 0 in a layer"
    try:
        weights = np.array(np.broadcast_to(np.array(given, dtype=np.float64), (len(heads), heads[0])))
    except (TypeError, ValueError):
        raise invalid("head_weights", rule, f"shape {np.shape(given)}") from None
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()):
        raise invalid("head_weights", rule, given)
    return list(weights / weights.sum(axis=1, keepdims=True))


def _query(query: int | None, length: int) -> int:
    if query is None:
        return length - 1
    if isinstance(query, bool) or not isinstance(query, int | np.integer) or not 0 <= query < length:
        raise invalid("query", f"must be a position in 0..{length - 1}", query)
    return int(query)
