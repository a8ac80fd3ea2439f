"""Scoring prompts that begin alike: every shared stretch is run once, answers and generations in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from catenary.models.extra import torch
from catenary.retrieval.scoring.caches import beginning, cache_bytes, check_cache, new_cache, side_by_side, some_rows
from catenary.retrieval.scoring.ending import Ending
from catenary.retrieval.scoring.forward import Forward
from catenary.retrieval.scoring.greedy import Generation, complete
from catenary.retrieval.scoring.query import Query, Reply
from catenary.retrieval.scoring.tree import turns

BATCH_BYTES = 1 << 31
"""Bytes of keys and values that may wait to be continued: 2 GB are ten prompts of 4,600 tokens of SmolLM2-135M in
float32 (46 kB a token), or eight of 500 tokens of a network with 0.5 MB a token. Continuing copies them once for the
answers, and once more to generate: three times as much is held at the most."""


@dataclass(frozen=True, eq=False)
class _Read:
    """A query whose prompt was run: its number, the prompt's cache, and the logits behind it."""

    row: int
    cache: Any
    logits: torch.Tensor


def score_cached(module: torch.nn.Module, queries: Sequence[Query], ending: Ending) -> list[Reply]:
    """Reply to every query; queries should begin alike.

    Prompts are walked in the order of their prefix tree with one cache. Those of equal length, with answers of equal
    length, are continued side by side, so that nothing is padded and no mask or position differs from a prompt
    run by itself.

    Raises:
        Unforkable: the network's state cannot be shared this way.
    """
    forward = Forward(module)
    device = next(module.parameters()).device
    replies: dict[int, Reply] = {}
    waiting: dict[tuple[int, int], list[_Read]] = {}
    with torch.no_grad():
        cache: Any = new_cache()
        held = 0
        for turn in turns([query.prompt for query in queries]):
            prompt = queries[turn.rows[0]].prompt
            cache = beginning(cache, turn.shared, len(prompt) - turn.shared)
            logits = forward(torch.from_numpy(prompt[None, turn.shared :]).to(device), cache=cache, keep=1)[:, -1]
            check_cache(cache, len(prompt))
            for row in turn.rows:
                waiting.setdefault((len(prompt), len(queries[row].answer)), []).append(_Read(row, cache, logits))
            held += cache_bytes(cache)
            if held >= BATCH_BYTES:
                replies |= _flush(forward, waiting, queries, ending)
                held = 0
        replies |= _flush(forward, waiting, queries, ending)
    return [replies[row] for row in range(len(queries))]


def _flush(
    forward: Forward, waiting: dict[tuple[int, int], list[_Read]], queries: Sequence[Query], ending: Ending
) -> dict[int, Reply]:
    """Replies of everything that waits, group by group; nothing waits afterwards."""
    replies: dict[int, Reply] = {}
    while waiting:
        replies |= _continue(forward, waiting.pop(next(iter(waiting))), queries, ending)
    return replies


def _continue(forward: Forward, group: list[_Read], queries: Sequence[Query], ending: Ending) -> dict[int, Reply]:
    """Replies of prompts of one length, whose answers have one length."""
    own = [queries[read.row] for read in group]
    size = len(own[0].prompt)
    wanted = torch.from_numpy(np.stack([query.answer for query in own])).to(group[0].logits.device)
    cache = side_by_side([read.cache for read in group], wanted.shape[1])
    behind = torch.cat([read.logits for read in group], dim=0)[:, None]
    steps = torch.cat([behind, forward(wanted, cache=cache, keep=wanted.shape[1])], dim=1)
    rows = [Generation(query.prompt, ending) for query in own]
    _generate(forward, cache, size, rows, wanted, steps.argmax(-1))
    return {
        read.row: Reply(logp, *row.result())
        for read, logp, row in zip(group, _logps(steps[:, :-1], wanted), rows, strict=True)
    }


def _logps(steps: Float[torch.Tensor, "B m V"], wanted: Int[torch.Tensor, "B m"]) -> list[float]:
    """Mean log-probability of each row's answer from the logits before each of its tokens."""
    each = steps.double().log_softmax(-1).gather(2, wanted[..., None])[..., 0]
    return [float(row.mean()) for row in each]


def _generate(
    forward: Forward, cache: Any, size: int, rows: list[Generation],
    wanted: Int[torch.Tensor, "B m"], chosen: Int[torch.Tensor, "B 1+m"],
) -> None:  # fmt: skip
    """Generate every row; ``cache`` holds prompts of ``size`` tokens and the answers, ``chosen`` is greedy behind each.

    A row that chose its answer goes on behind it, the others from the prompt's end.
    """
    whole = (chosen[:, :-1] == wanted).all(dim=1).tolist()
    for row, right, tokens in zip(rows, whole, chosen.tolist(), strict=True):
        row.take(tokens if right else tokens[:1])
    for kept, length in ((True, size + wanted.shape[1]), (False, size)):
        numbers = [number for number, right in enumerate(whole) if right is kept]
        if any(rows[number].live for number in numbers):
            room = rows[0].ending.limit
            complete(forward, some_rows(cache, numbers, length, room), [rows[number] for number in numbers])
