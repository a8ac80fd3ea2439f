"""Greedy generation of several prompts side by side, several tokens a pass where a guess at them proves right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.models.extra import torch
from catenary.retrieval.scoring.caches import cache_length, cut, some_rows
from catenary.retrieval.scoring.draft import draft
from catenary.retrieval.scoring.ending import Ending
from catenary.retrieval.scoring.forward import Forward

FIRST_DRAFT, LONGEST_DRAFT = 4, 16
"""Tokens guessed at first; twice as many after a guess that was right to its end, up to the second number: a pass holds
the logits of all of them."""


@dataclass(eq=False)
class Generation:
    """What one prompt has generated so far."""

    prompt: Int64[np.ndarray, " n"]
    ending: Ending
    made: list[int] = field(default_factory=list)
    over: bool = False

    @property
    def live(self) -> bool:
        """Whether more is to come."""
        return not self.over and len(self.made) < self.ending.limit

    def take(self, tokens: Sequence[int]) -> None:
        """Append tokens up to the end of the generation."""
        for token in tokens:
            if not self.live:
                return
            self.made.append(token)
            self.over = self.ending.over(self.made)

    def ends_within(self, tokens: Sequence[int]) -> bool:
        """Whether it would be complete after at most these tokens."""
        trial = Generation(self.prompt, self.ending, [*self.made])
        trial.take(tokens)
        return not trial.live

    def guess(self, length: int) -> Int64[np.ndarray, " k"]:
        """``length`` tokens that may come next."""
        return draft(np.concatenate([self.prompt, np.array(self.made, dtype=np.int64)]), length)

    def result(self) -> tuple[str, bool]:
        """The text, and whether it came to its end."""
        return self.ending.text(self.made), self.over


def complete(forward: Forward, cache: Any, rows: Sequence[Generation]) -> None:
    """Generate every row to its end; ``cache`` has room for that, and is used up.

    Rows go in step: those that are live hold equally many tokens, all of which but the last are in the cache. In each
    pass the network reads the last token and a guess at the next k. Its own choice behind each token read that is
    its own choice too is greedy; the fewest of any live row are taken by all, so that no row is ever padded.
    """
    device = next(forward.module.parameters()).device
    held, length = list(rows), FIRST_DRAFT
    while True:
        live = [number for number, row in enumerate(held) if row.live]
        if not live:
            return
        before, one = cache_length(cache), held[live[0]]
        if 2 * len(live) <= len(held):  # rows that ended are read on until half have, for leaving them out is a copy
            held = [held[number] for number in live]
            cache = some_rows(cache, live, before, one.ending.limit)
        length = min(length, LONGEST_DRAFT, one.ending.limit - len(one.made) - 1)
        guesses = np.stack([row.guess(length) for row in held])
        read = np.column_stack([np.array([row.made[-1] for row in held]), guesses])
        logits = forward(torch.from_numpy(read).to(device), cache=cache, keep=1 + length)
        chosen = logits.argmax(-1).cpu().numpy()
        right = agreed(held, guesses, chosen)
        for row, tokens in zip(held, chosen[:, : right + 1].tolist(), strict=True):
            row.take(tokens)
        cut(cache, before + right + 1)
        length = 2 * length if right == length else max(1, right)


def agreed(
    rows: Sequence[Generation], guesses: Int64[np.ndarray, "B k"], chosen: Int64[np.ndarray, "B 1+k"]
) -> int:
    """How many guessed tokens every row that goes on chose itself; a row that ends before takes its own part."""
    each = np.cumprod(guesses == chosen[:, :-1], axis=1).sum(axis=1)
    going = [
        int(right) for row, tokens, right in zip(rows, chosen.tolist(), each, strict=True)
        if not row.ends_within(tokens[: right + 1])
    ]  # fmt: skip
    return min(going, default=int(each.max()))
