"""The text of an evolution: what is trained on, and the windows that are kept from it and measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catenary.study.config import StudyConfig, Tokens
from catenary.study.course import Course
from catenary.study.inputs import load_tokenizer
from catenary.study.source import Source
from catenary.study.units import derived_seed
from catenary.text.documents import Document, Documents
from catenary.text.split import TrainingText
from catenary.text.windows import Windows


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Windows by condition, the text to train on (None where nothing is trained), and how both were made."""

    windows: Mapping[Tokens, Windows]
    training: TrainingText | None
    report: Mapping[str, Any]


def held_out_windows(config: StudyConfig, course: Course, source: Source) -> HeldOut:
    """Windows of documents that are not trained on; of all documents, where nothing is trained.

    Raises:
        InvalidInput: too few documents for either.
    """
    from catenary.text.chunked import chunked_windows
    from catenary.text.documents import PYTHON_DOCS, read_documents
    from catenary.text.split import split_documents
    from catenary.text.vanilla import vanilla_windows

    documents = read_documents(config.documents or PYTHON_DOCS)
    tokenizer = load_tokenizer(config, source)
    training: TrainingText | None = None
    report: Mapping[str, Any] = {}
    given: Documents | Iterable[Document] = documents
    if not course.revisions:
        split = split_documents(
            documents, tokenizer, length=config.length, count=course.training_documents,
            seed=derived_seed(config.seed, "split"), bos=config.bos,
        )
        training, report, given = split.training, split.report, split.held_out
    common: dict[str, Any] = {"length": config.length, "count": course.sequences, "bos": config.bos}
    windows: dict[Tokens, Windows] = {}
    for kind in config.conditions:
        seed = derived_seed(config.seed, kind)
        if kind == "vanilla":
            windows[kind] = vanilla_windows(given, tokenizer, seed=seed, **common)
        else:
            windows[kind] = chunked_windows(given, tokenizer, seed=seed, chunk=config.chunk, **common)
    return HeldOut(windows, training, report)
