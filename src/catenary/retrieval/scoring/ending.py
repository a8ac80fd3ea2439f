"""Ending: when a generation is over, and its tokens as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ending:
    """A generation ends at an end token, with ``lines`` also at the first line end behind text.

    What has not ended after ``limit`` tokens is truncated.
    """

    tokenizer: Any
    ends: frozenset[int]
    limit: int
    lines: bool

    def over(self, ids: Sequence[int]) -> bool:
        """Whether the generation has come to its end."""
        if not ids:
            return False
        return ids[-1] in self.ends or (self.lines and "\n" in self.text(ids).lstrip())

    def text(self, ids: Sequence[int]) -> str:
        """The generated text, special tokens left out."""
        kept = [token for token in ids if token not in self.ends]
        return str(self.tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return {"end_tokens": sorted(self.ends), "max_new_tokens": self.limit, "ends_at_line_end": self.lines}


def end_tokens(module: Any, tokenizer: Any) -> frozenset[int]:
    """Ids that end a generation: the tokenizer's, the config's and those of the network's generation config."""
    found: set[int] = set()
    for source in (tokenizer, getattr(module, "config", None), getattr(module, "generation_config", None)):
        given = getattr(source, "eos_token_id", None)
        if given is not None:
            found |= {int(given)} if isinstance(given, int) else {int(token) for token in given}
    return frozenset(found)
