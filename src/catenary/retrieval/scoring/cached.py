"""Scoring prompts that begin alike: every shared stretch is run once, answers and generations in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catenary.models.extra import torch
from catenary.retrieval.scoring.ending import Ending
from catenary.retrieval.scoring.forward import (
    Forward,
    beginning,
    cache_bytes,
    check_cache,
    new_cache,
    side_by_side,
)
from catenary.retrieval.scoring.query import Query, Reply
from catenary.retrieval.scoring.tree import turns

BATCH_BYTES = 1 << 31
"""Bytes of keys and values that may wait to be continued: 2 GB are ten prompts of 4,600 tokens of SmolLM2-135M in
float32 (46 kB a token), or eight of 500 tokens of a network with 0.5 MB a token. Continuing copies them once."""


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
            cache = beginning(cache, turn.shared)
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
    rows = [read.row for read in group]
    size = len(queries[rows[0]].prompt)
    logits = torch.cat([read.logits for read in group], dim=0)
    shared = side_by_side([read.cache for read in group])
    logps = _logps(forward, shared, logits, [queries[row] for row in rows])
    texts = _generate(forward, beginning(shared, size), logits, ending)
    return {row: Reply(logp, *text) for row, logp, text in zip(rows, logps, texts, strict=True)}


def _logps(forward: Forward, cache: Any, logits: torch.Tensor, queries: Sequence[Query]) -> list[float]:
    """Mean log-probability of each query's answer; ``logits`` are those behind the prompts, ``cache`` grows."""
    wanted = torch.from_numpy(np.stack([query.answer for query in queries])).to(logits.device)
    steps = logits[:, None]
    if wanted.shape[1] > 1:
        steps = torch.cat([steps, forward(wanted[:, :-1], cache=cache, keep=wanted.shape[1] - 1)], dim=1)
    each = steps.double().log_softmax(-1).gather(2, wanted[..., None])[..., 0]
    return [float(row.mean()) for row in each]


def _generate(forward: Forward, cache: Any, logits: torch.Tensor, ending: Ending) -> list[tuple[str, bool]]:
    """The greedy generation of every row, and whether it ended; ``cache`` is used up."""
    made: list[list[int]] = [[] for _ in range(len(logits))]
    over = [False] * len(made)
    for step in range(ending.limit):
        chosen = logits.argmax(-1)
        for row, token in enumerate(chosen.tolist()):
            if not over[row]:
                made[row].append(token)
                over[row] = ending.over(made[row])
        if all(over) or step + 1 == ending.limit:
            break
        logits = forward(chosen[:, None], cache=cache, keep=1)[:, -1]
    return [(ending.text(ids), done) for ids, done in zip(made, over, strict=True)]
