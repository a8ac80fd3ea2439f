"""Retrieval tasks: prompts whose fact can stand at any place."""

from __future__ import annotations

from catenary.retrieval.tasks import ab_order as _ab_order
from catenary.retrieval.tasks import facts as _facts
from catenary.retrieval.tasks import key_value as _key_value
from catenary.retrieval.tasks import key_value_digits as _key_value_digits
from catenary.retrieval.tasks import list_order as _list_order
from catenary.retrieval.tasks import needle as _needle
from catenary.retrieval.tasks import published as _published
from catenary.retrieval.tasks import questions as _questions
from catenary.retrieval.tasks.load import load_task, rebuild_task
from catenary.retrieval.tasks.registry import TASKS, Kind

# Imported for their registration.
_REGISTERED = (_key_value, _key_value_digits, _facts, _questions, _published, _needle, _list_order, _ab_order)

__all__ = ["TASKS", "Kind", "load_task", "rebuild_task"]
