"""Load a task: by its name, or by a file or folder that says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, unknown
from catenary.retrieval.case import Task
from catenary.retrieval.tasks.questions import DISTRACTORS, GOLD
from catenary.retrieval.tasks.registry import TASKS
from catenary.retrieval.tasks.rows import find_files, read_rows


def load_task(name_or_path: str, **options: Any) -> Task:
    """The task of this name, or of this file or folder, with these options.

    A path is a ``.jsonl(.gz)`` file (published files, your questions, or pairs of options, told apart by their
    fields), a pattern of published files, or the factbook's folder. A folder of plain texts is refused: questions
    about them cannot be made up without somebody who knows the answers.

    Raises ``InvalidInput`` for a name, or an option, that is not known, with the nearest one and all of them.
    """
    if name_or_path in TASKS:
        name = name_or_path
    else:
        name = recognise(name_or_path)
        options = {TASKS[name].data: name_or_path, **options}
    kind = TASKS[name]
    defaults = kind.defaults()
    options = {option: str(value) if isinstance(value, Path) else value for option, value in options.items()}
    for option in options:
        if option not in defaults:
            raise unknown(f"option of {name}", option, defaults)
    missing = [each for each, default in defaults.items() if default is Parameter.empty and each not in options]
    if missing:
        raise InvalidInput(f"{name}: needs {', '.join(f'{each} ({kind.options[each]})' for each in missing)}")
    return kind.build(**options)


def recognise(path: str) -> str:
    """The name of the task that this file, pattern or folder is for.

    Raises ``InvalidInput`` if it is neither that nor the name of a task.
    """
    place = Path(path)
    if not place.exists() and "*" not in path and not path.endswith((".jsonl", ".jsonl.gz")):
        raise unknown("retrieval task or file", path, TASKS)
    if place.is_dir() and (any(place.glob("*/??.json")) or (place / "factbook").is_dir()):
        return "facts"
    if place.is_dir() and not any(each.name.endswith((".jsonl", ".jsonl.gz")) for each in place.iterdir()):
        raise InvalidInput(
            f"{path}: a folder of texts holds no questions. It can be a haystack: --task needle --data {path}, in "
            f"Python load_task('needle', documents={path!r}). Questions about documents need a .jsonl file of "
            "question, answers, gold and distractors; facts and key-value make their own"
        )
    row = read_rows(find_files(path)[0])[0]
    fields = set(row.value)
    if fields & {"ctxs", "ordered_kv_records"}:
        return "published"
    if "options" in fields:
        return "ab-order"
    if fields & {*GOLD, *DISTRACTORS}:
        return "questions"
    if "question" in fields:
        raise row.wrong("holds a question without documents (ctxs, or gold and distractors), so no position to vary")
    raise row.wrong(
        "is no task: neither ctxs nor ordered_kv_records (published files), nor question, answers, gold and "
        f"distractors, nor options; it has {', '.join(map(str, row.value)) or 'no field'}. Texts alone can be a "
        "haystack: task needle with documents"
    )


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
