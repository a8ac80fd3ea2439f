"""Token windows: from documents, random vectors, Zipf draws."""

from __future__ import annotations

from catenary.text.chunked import chunked_windows, default_chunk
from catenary.text.documents import Document, Documents, read_documents
from catenary.text.synthetic import random_windows, repeat_probability, zipf_repeat_probability, zipf_windows
from catenary.text.tokenise import Opening, Tokens, open_with, opening, tokenise_text
from catenary.text.vanilla import vanilla_windows
from catenary.text.windows import Windows

__all__ = [
    "Document",
    "Documents",
    "Opening",
    "Tokens",
    "Windows",
    "chunked_windows",
    "default_chunk",
    "open_with",
    "opening",
    "random_windows",
    "read_documents",
    "repeat_probability",
    "tokenise_text",
    "vanilla_windows",
    "zipf_repeat_probability",
    "zipf_windows",
]
