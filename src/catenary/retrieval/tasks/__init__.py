"""Retrieval tasks: prompts whose fact can stand at any place."""

from __future__ import annotations

from catenary.retrieval.tasks import facts as _facts
from catenary.retrieval.tasks import key_value as _key_value
from catenary.retrieval.tasks import key_value_digits as _key_value_digits
from catenary.retrieval.tasks.load import load_task, rebuild_task
from catenary.retrieval.tasks.registry import TASKS, Kind

# Imported for their registration, in the order they are listed in.
_REGISTERED = (_key_value, _key_value_digits, _facts)

__all__ = ["TASKS", "Kind", "load_task", "rebuild_task"]
