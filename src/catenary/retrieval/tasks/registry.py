"""The table of retrieval tasks: a name, what it asks, how it is built, and a sentence for every option."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catenary.errors import InvalidInput
from catenary.registry import Registry
from catenary.retrieval.case import Task


@dataclass(frozen=True)
class Kind:
    """One kind of task.

    Attributes:
        summary: what a prompt asks, in one sentence.
        build: makes the task from its options, all of them keywords.
        options: a sentence for every option of ``build``.
        data: the option that names the file or folder it reads; "" for one that needs none.
    """

    summary: str
    build: Callable[..., Task]
    options: Mapping[str, str]
    data: str = ""

    def defaults(self) -> dict[str, Any]:
        """The default of every option; ``inspect.Parameter.empty`` where one must be given."""
        return {name: each.default for name, each in inspect.signature(self.build).parameters.items()}


TASKS: Registry[Kind] = Registry("retrieval task")

COMMON = {
    "count": "how many samples",
    "seed": "decides every draw; sample n does not depend on how many there are",
    "template": "the prompt's wording: a file, or built-in:NAME",
    "document_format": "how one document is written, instead of the template's own line",
    "query_first": "ask before the documents as well",
    "closed_template": "the wording of the question without documents",
}
"""Sentences for options that several kinds share."""


def common(*names: str) -> dict[str, str]:
    """The shared sentences of these options."""
    return {name: COMMON[name] for name in names}


def at_least(argument: str, value: int, least: int) -> int:
    """``value`` if it is a whole number >= ``least``, else ``InvalidInput``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{argument} must be a whole number >= {least}, got {value!r}")
    return value
