"""Candidates: documents in a seeded random order, read only as far as needed, with every one accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.errors import InvalidInput
from catenary.text.documents import Document, Documents, read_documents
from catenary.text.records import is_unicode

# Documents are shuffled within pools of this many. A folder is usually one pool; of an endless stream the first pools
# are used, in order. The second bound keeps a pool of long documents within a few hundred MB.
POOL_DOCUMENTS = 2000
POOL_CHARACTERS = 64_000_000

Source = Documents | Iterable[Document | str] | str | Path


class Candidates:
    """Documents of a source in seeded order; ``skip`` those that will not do, and ask for the counts at the end.

    found = used + skipped + unused, where unused documents were read into a pool but not needed.
    """

    def __init__(self, source: Source, rng: np.random.Generator, least: int) -> None:
        """Prepare to read ``source`` for documents of at least ``least`` tokens; nothing is read yet."""
        documents = read_documents(source) if isinstance(source, str | Path) else source
        self.skipped: Counter[str] = Counter()
        self._stream = documents.read(self.skipped) if isinstance(documents, Documents) else _named(documents)
        self._rng = rng
        self._least = least
        self._seen: set[bytes] = set()
        self.read = 0
        self.tried = 0
        self.exhausted = False

    def __iter__(self) -> Iterator[Document]:
        """Documents in random order within each pool, pools in the order of the source."""
        while pool := self._pool():
            for index in self._rng.permutation(len(pool)):
                self.tried += 1
                text = pool[index].text
                if not is_unicode(text):
                    self.skip("not UTF-8")
                # No token is shorter than a byte: a million tiny lines need not be tokenised to be refused.
                elif len(text) < self._least and len(text.encode("utf-8")) < self._least:
                    self.too_short()
                else:
                    yield pool[index]

    def _pool(self) -> list[Document]:
        pool: list[Document] = []
        characters = 0
        for document in self._stream:
            pool.append(document)
            characters += len(document.text)
            if len(pool) >= POOL_DOCUMENTS or characters >= POOL_CHARACTERS:
                break
        else:
            self.exhausted = True
        self.read += len(pool)
        return pool

    def skip(self, reason: str) -> None:
        """Count the document that was just given as passed over."""
        self.skipped[reason] += 1

    def too_short(self) -> None:
        """Count the document that was just given as shorter than needed."""
        self.skip(f"shorter than {self._least} tokens")

    def repeated(self, ids: Int64[np.ndarray, " n"]) -> bool:
        """Whether these tokens were seen before; the same text twice would count as two independent sequences."""
        digest = blake2b(ids.tobytes(), digest_size=16).digest()
        known = digest in self._seen
        self._seen.add(digest)
        return known

    def counts(self, used: int) -> dict[str, Any]:
        """What became of the documents, with found = used + sum(skipped) + unused."""
        unused = self.read - self.tried
        return {
            "found": used + sum(self.skipped.values()) + unused,
            "used": used,
            "unused": unused,
            "skipped": dict(sorted(self.skipped.items())),
            "source_read_to_its_end": self.exhausted,
        }

    def too_few(self, wanted: str, enough: int, hint: str) -> InvalidInput:
        """The error for a source that does not hold what was asked for."""
        skipped = ", ".join(f"{count} {reason}" for reason, count in self.skipped.most_common(6)) or "none"
        found = enough + sum(self.skipped.values())
        return InvalidInput(
            f"documents must hold {wanted}, got {enough} of {found} found (passed over: {skipped}); {hint}"
        )


def _named(documents: Iterable[Document | str]) -> Iterator[Document]:
    """Plain strings become documents named by their place."""
    for number, item in enumerate(documents):
        yield item if isinstance(item, Document) else Document(item, f"text {number}", "given")
