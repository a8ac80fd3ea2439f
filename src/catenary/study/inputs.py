"""Inputs: the windows each condition is measured on, and what is known of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from catenary.study.config import StudyConfig, Tokens
from catenary.study.parts import Part
from catenary.study.source import Source
from catenary.study.units import derived_seed
from catenary.text.windows import Windows

Builder = Callable[[StudyConfig, Source, Part], Windows]


def build_windows(tokens: Tokens, config: StudyConfig, source: Source, part: Part) -> Windows:
    """The ``nets * windows`` windows of one condition; raises ``InvalidInput`` where they cannot be made."""
    return _BUILDERS[tokens](config, source, part)


def describe_windows(windows: Windows) -> dict[str, Any]:
    """What a result stores about its windows: how they were made, what was skipped, where each came from."""
    return {
        "kind": windows.kind,
        "vectors": windows.vectors,
        "report": dict(windows.report),
        "sources": [dict(source) for source in windows.sources],
    }


def _random(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.synthetic import random_windows

    return random_windows(config.length, part.nets * part.windows, derived_seed(config.seed, "random"))


def _zipf(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.synthetic import zipf_windows

    vocabulary = source.architecture.vocabulary or 50_000
    seed = derived_seed(config.seed, "zipf")
    windows = zipf_windows(config.length, part.nets * part.windows, seed, vocabulary=vocabulary)
    return replace(windows, vectors="gaussian")  # repeats share a vector, and no embedding matrix is needed


def _vanilla(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.vanilla import vanilla_windows

    return vanilla_windows(**_text(config, source, part, "vanilla"))


def _chunked(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.chunked import chunked_windows

    return chunked_windows(**_text(config, source, part, "chunked"), chunk=config.chunk)


def _shuffled(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.controls import shuffled_windows

    return shuffled_windows(_chunked(config, source, part), derived_seed(config.seed, "shuffled"))


def _uniform(config: StudyConfig, source: Source, part: Part) -> Windows:
    from catenary.text.controls import uniform_windows

    return uniform_windows(
        load_tokenizer(config, source),
        length=config.length,
        count=part.nets * part.windows,
        seed=derived_seed(config.seed, "uniform"),
        bos=config.bos,
        vocabulary=source.architecture.vocabulary,
    )


def _text(config: StudyConfig, source: Source, part: Part, kind: Tokens) -> dict[str, Any]:
    """What both kinds of document windows are made from."""
    from catenary.text.documents import PYTHON_DOCS, read_documents

    return {
        "documents": read_documents(config.documents or PYTHON_DOCS),
        "tokenizer": load_tokenizer(config, source),
        "length": config.length,
        "count": part.nets * part.windows,
        "seed": derived_seed(config.seed, kind),
        "bos": config.bos,
    }


def load_tokenizer(config: StudyConfig, source: Source) -> Any:
    """The tokenizer of a source that has one."""
    from transformers import AutoTokenizer

    assert source.tokenizer is not None
    return AutoTokenizer.from_pretrained(source.tokenizer, trust_remote_code=config.trust_remote_code)


_BUILDERS: Mapping[Tokens, Builder] = {
    "random": _random,
    "zipf": _zipf,
    "vanilla": _vanilla,
    "chunked": _chunked,
    "shuffled": _shuffled,
    "uniform": _uniform,
}
