"""Documents put aside: some to train on, in random windows, and the others to measure on, never the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.errors import InvalidInput, invalid
from catenary.text.candidates import POOL_CHARACTERS, POOL_DOCUMENTS
from catenary.text.chunked import MOST_CHARACTERS
from catenary.text.documents import Document, Documents
from catenary.text.excerpts import check_request
from catenary.text.records import is_unicode
from catenary.text.tokenise import Bos, Opening, opening, tokenise_text


@dataclass(frozen=True, eq=False)
class TrainingText:
    """The token ids of the documents to train on, what opens a window, and the window's length L."""

    names: tuple[str, ...]
    tokens: tuple[Int64[np.ndarray, _], ...]
    start: Opening
    length: int

    def window(self, generator: np.random.Generator) -> Int64[np.ndarray, " L"]:
        """What opens a window, then consecutive tokens of one document: it and the first one are drawn uniformly."""
        front = np.array(self.start.ids, dtype=np.int64)
        tokens = self.tokens[int(generator.integers(len(self.tokens)))]
        wanted = self.length - len(front)
        first = int(generator.integers(0, len(tokens) - wanted + 1))
        return np.concatenate([front, tokens[first : first + wanted]])

    def digest(self) -> str:
        """Identifies the documents, their tokens and the opening."""
        total = blake2b(digest_size=16)
        for part in (np.array([self.length, *self.start.ids], dtype=np.int64), *self.tokens):
            total.update(np.ascontiguousarray(part).tobytes())
        return total.hexdigest()


@dataclass(frozen=True, eq=False)
class Split:
    """Text to train on, the documents that are kept from it, and how many were passed over, by reason."""

    training: TrainingText
    held_out: tuple[Document, ...]
    report: Mapping[str, Any]


def split_documents(
    documents: Documents, tokenizer: Any, *, length: int, count: int, seed: int, bos: Bos = "tokenizer"
) -> Split:
    """Put ``count`` documents of at least L tokens aside to train on; all others of one pool are held out.

    One pool of the source (``POOL_DOCUMENTS`` documents or ``POOL_CHARACTERS`` characters) is read and shuffled by
    ``seed``; the first ``count`` that are long enough are trained on. A text that occurs twice is kept once, so that no
    text is on both sides; texts that only share passages may be. Of a long document its first ``MOST_CHARACTERS``
    characters are used.

    Raises:
        InvalidInput: the source has no ``count`` such documents beside at least one other.
    """
    check_request(length, count, seed)
    start = opening(tokenizer, bos)
    wanted = length - len(start.ids)
    if wanted < 2:
        raise invalid("length", f"must be > {len(start.ids) + 1}", length)
    skipped: Counter[str] = Counter()
    pool = list(_pool(documents, skipped))
    chosen: list[tuple[str, Int64[np.ndarray, _]]] = []
    rest: list[Document] = []
    for index in np.random.default_rng(seed).permutation(len(pool)):
        document = pool[index]
        if len(chosen) < count and len(document.text) >= wanted:
            tokens = tokenise_text(document.text, tokenizer, characters=MOST_CHARACTERS)
            if len(tokens) >= wanted:
                chosen.append((document.name, tokens.ids))
                continue
        rest.append(document)
    if len(chosen) < count or not rest:
        raise InvalidInput(
            f"documents must hold {count} texts of at least {wanted} tokens to train on and others to measure on, got "
            f"{len(chosen)} and {len(rest)} of {len(pool)} different texts; give more documents, a smaller length, or "
            "fewer --training-documents"
        )
    names, tokens_of = zip(*chosen, strict=True)
    report = {
        "read": len(pool), "skipped": dict(sorted(skipped.items())), "training": list(names), "held_out": len(rest),
        "training_tokens": int(sum(len(ids) for ids in tokens_of)),
    }  # fmt: skip
    return Split(TrainingText(names, tokens_of, start, length), tuple(rest), report)


def _pool(documents: Documents, skipped: Counter[str]) -> Iterator[Document]:
    """The different texts of the first pool."""
    seen: set[bytes] = set()
    characters = 0
    for document in documents.read(skipped):
        key = blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in seen or not is_unicode(document.text):
            skipped["the same as another one" if key in seen else "not UTF-8"] += 1
            continue
        seen.add(key)
        characters += len(document.text)
        yield document
        if len(seen) >= POOL_DOCUMENTS or characters >= POOL_CHARACTERS:
            return
