"""Encoder: a case as token ids, with what the tokenizer or a chat template puts around it, and each slot's tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.errors import InvalidInput, invalid
from catenary.retrieval.case import Case
from catenary.text.tokenise import Bos, Opening, open_with, opening, tokenise_text

_PROBE = "{prompt}"


@dataclass(frozen=True, eq=False)
class Encoded:
    """A case in tokens.

    Attributes:
        prompt: ids of the prompt, with what opens it.
        continuation: ids of the lead and the first answer.
        unscored: how many of the continuation's first tokens hold nothing of the answer.
        slots: by slot, its first token in ``prompt`` and one past its last; a token belongs where it begins.
        apart: the continuation was tokenised by itself, because together with the prompt it changes the prompt's ids.
    """

    prompt: Int64[np.ndarray, " n"]
    continuation: Int64[np.ndarray, " m"]
    unscored: int
    slots: Mapping[int, tuple[int, int]]
    apart: bool

    @property
    def answer(self) -> Int64[np.ndarray, " k"]:
        """The tokens whose log-probability is scored."""
        return self.continuation[self.unscored :]


@dataclass(frozen=True)
class _Rendered:
    """A prompt as it is tokenised: the case's text stands at ``at``, less what a template strips from it."""

    text: str
    at: int
    special: bool


class Encoder:
    """Makes token ids of cases for one tokenizer."""

    def __init__(self, tokenizer: Any, *, bos: Bos = "tokenizer", chat: bool = False) -> None:
        """Look at what the tokenizer adds.

        Args:
            tokenizer: of transformers, fast or slow.
            bos: ``tokenizer`` as it does, ``none``, or ``one``; there is never more than one. With a chat template,
                ``tokenizer`` is what the template writes.
            chat: whether a prompt goes into the chat template as one user turn, or is text to be continued.

        Raises:
            InvalidInput: unknown words, ``one`` without a BOS token, ``chat`` without a template.
        """
        if chat and not getattr(tokenizer, "chat_template", None):
            raise invalid("chat", "can be on only with a tokenizer that has a chat template", "none", "use off")
        self.tokenizer = tokenizer
        self.bos = bos
        self.chat = chat
        before = opening(tokenizer, bos)
        self.opening = Opening(bos, (), 0, before.dropped) if self.chat and bos == "tokenizer" else before

    def encode(self, case: Case) -> Encoded:
        """Ids of a case's prompt and first answer.

        Answer and prompt are tokenised together. Where that changes the prompt's own ids, what follows is tokenised
        by itself (``apart``). With a chat template the lead is left out: the template says where an answer begins.

        Raises:
            InvalidInput: the chat template changes the prompt's text, or would read part of it as its own tokens.
        """
        rendered = self._render(case)
        ids, starts, _ = self._tokens(rendered.text, rendered.special)
        lead = "" if self.chat else case.lead
        continuation, unscored, apart = self._continue(rendered, ids, lead, case.answers[0])
        opened = self._open(ids)
        shift = len(opened) - len(ids)
        slots = {
            slot: tuple(int(x) + shift for x in self._places(rendered, ids, starts, span))
            for slot, span in case.spans().items()
        }
        return Encoded(opened, continuation, unscored, slots, apart)  # type: ignore[arg-type]  # pairs, as built above

    def rendered(self, case: Case) -> str:
        """The prompt's text as it is tokenised, chat template and all."""
        return self._render(case).text

    def count(self, text: str) -> int:
        """How many tokens a text is by itself."""
        return len(self._tokens(text, False)[0])

    def record(self) -> dict[str, Any]:
        """What decides the ids beside the tokenizer's files, as JSON values."""
        return {
            "tokenizer": type(self.tokenizer).__name__,
            "vocabulary": len(self.tokenizer),
            "bos": self.opening.to_dict(),
            "chat": self.chat,
            "chat_around": self._template(_PROBE) if self.chat else None,
        }

    def _render(self, case: Case) -> _Rendered:
        if not self.chat:
            return _Rendered(case.text, 0, False)
        spelt = [token for token in _special(self.tokenizer) if token in case.text]
        if spelt:
            raise InvalidInput(
                f"the prompt holds {spelt[0]!r}, which a chat template's tokenizer reads as a token of its own; "
                "use --chat off"
            )
        whole, own = self._template(case.text), case.text.strip()
        if own not in whole:
            raise InvalidInput("the chat template changes the prompt's text; use --chat off")
        return _Rendered(whole, whole.index(own) - (len(case.text) - len(case.text.lstrip())), True)

    def _template(self, text: str) -> str:
        turn = [{"role": "user", "content": text}]
        return str(self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))

    def _open(self, ids: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " m"]:
        token = self.tokenizer.bos_token_id
        if self.bos == "none" and token is not None:
            while len(ids) and ids[0] == token:
                ids = ids[1:]
        return open_with(ids, self.opening, token)

    def _continue(
        self, rendered: _Rendered, ids: Int64[np.ndarray, " n"], lead: str, answer: str
    ) -> tuple[Int64[np.ndarray, " m"], int, bool]:
        """Ids behind the prompt, how many of them are lead alone, and whether they were tokenised apart."""
        begin = rendered.text + lead
        joint, _, ends = self._tokens(begin + answer, rendered.special)
        apart = len(joint) <= len(ids) or not np.array_equal(joint[: len(ids)], ids)
        if apart:
            begin = lead
            joint, _, ends = self._tokens(lead + answer, False)
        kept = joint if apart else joint[len(ids) :]
        if ends is not None:
            unscored = int((ends[len(joint) - len(kept) :] <= len(begin)).sum())
        else:
            alone, _, _ = self._tokens(begin, rendered.special and not apart)
            unscored = max(_common(alone, joint) - (len(joint) - len(kept)), 0)
        if unscored >= len(kept):
            raise InvalidInput(f"the tokenizer makes no token of the answer {answer!r}; leave the sample out")
        return kept, unscored, apart

    def _places(
        self, rendered: _Rendered, ids: Int64[np.ndarray, " n"], starts: Int64[np.ndarray, " n"] | None,
        span: tuple[int, int],
    ) -> tuple[int, int]:  # fmt: skip
        first, last = (max(0, min(rendered.at + place, len(rendered.text))) for place in span)
        if starts is not None:
            return int(np.searchsorted(starts, first)), int(np.searchsorted(starts, last))
        heads = (self._tokens(rendered.text[:place], rendered.special)[0] for place in (first, last))
        first_token, last_token = (_common(head, ids) for head in heads)
        return first_token, last_token

    def _tokens(
        self, text: str, special: bool
    ) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"] | None, Int64[np.ndarray, " n"] | None]:
        """Ids of a text without what is added around it, and where tokens start and end if the tokenizer says."""
        if getattr(self.tokenizer, "is_fast", False):
            tokens = tokenise_text(text, self.tokenizer, special_tokens=special)
            return tokens.ids, tokens.starts, tokens.ends
        made = self.tokenizer(text, add_special_tokens=False, split_special_tokens=not special, verbose=False)
        return np.asarray(made["input_ids"], dtype=np.int64).reshape(-1), None, None


def _special(tokenizer: Any) -> list[str]:
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    named = {str(token) for token in added if getattr(token, "special", False)} | set(tokenizer.all_special_tokens)
    return sorted(named, key=len, reverse=True)


def _common(a: Int64[np.ndarray, " n"], b: Int64[np.ndarray, " m"]) -> int:
    """How many first ids two sequences share."""
    size = min(len(a), len(b))
    differs = np.flatnonzero(a[:size] != b[:size])
    return int(differs[0]) if differs.size else size
