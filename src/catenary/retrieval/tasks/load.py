"""Load a task: by its name, or by a file or folder that says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

from catenary.errors import InvalidInput, unknown
from catenary.retrieval.case import Task
from catenary.retrieval.tasks.registry import TASKS


def load_task(name_or_path: str, **options: Any) -> Task:
    """The task of this name with these options.

    Raises ``InvalidInput`` for a name, or an option, that is not known, with the nearest one and all of them.
    """
    kind = TASKS[name_or_path]
    defaults = kind.defaults()
    for option in options:
        if option not in defaults:
            raise unknown(f"option of {name_or_path}", option, defaults)
    missing = [name for name, default in defaults.items() if default is Parameter.empty and name not in options]
    if missing:
        raise InvalidInput(f"{name_or_path}: needs {', '.join(f'{name} ({kind.options[name]})' for name in missing)}")
    return kind.build(**options)


def rebuild_task(record: Mapping[str, Any]) -> Task:
    """The task that gave this ``record()``.

    Raises ``InvalidInput`` naming what differs if its files have changed since.
    """
    task = load_task(record["task"], **record["options"])
    again = task.record()
    changed = [part for part in record if again.get(part) != record[part]]
    if changed:
        raise InvalidInput(f"{record['task']}: its {' and '.join(changed)} changed since it was recorded")
    return task
