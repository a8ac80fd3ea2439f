"""Published lost-in-the-middle files, read as they are: documents of which one ``isgold``, or key-value records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.retrieval.case import Case
from catenary.retrieval.tasks.placed import Item, Placed, occurs
from catenary.retrieval.tasks.questions import document
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.rows import Row, chosen, digest, find_files, read_rows
from catenary.retrieval.tasks.template import CLOSED, PAIRS, QUESTIONS, read_template

GOLD_AT = re.compile(r"gold_at_(\d+)")


@dataclass(frozen=True)
class Published:
    """Files that each put the gold document at one slot, as one task.

    At a slot that has a file the prompt holds that file's documents in their order. At another slot the gold document
    of the first file's record is moved there; with ``reorder`` false such a slot is refused.
    """

    files: Mapping[int, Placed]
    reorder: bool
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """``published``."""
        return "published"

    @property
    def slots(self) -> int:
        """How many documents a prompt holds."""
        return self._first.slots

    @property
    def positions(self) -> tuple[int, ...]:
        """The slots that can be asked for: those of the files, or all with ``reorder``."""
        return tuple(range(self.slots)) if self.reorder else tuple(sorted(self.files))

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self._first)

    def case(self, sample: int, slot: int) -> Case:
        """Sample ``sample`` with its gold document at ``slot``."""
        if slot not in self.files and not self.reorder:
            raise invalid("slot", f"must be one of the files' {sorted(self.files)}", slot, "or set reorder=True")
        case = self.files.get(slot, self._first).case(sample, slot)
        return replace(case, sample=self._first.items[sample].name)  # one name, whichever file it came from

    def closed_book(self, sample: int) -> Case | None:
        """The question without documents."""
        return self._first.closed_book(sample)

    def oracle(self, sample: int) -> Case | None:
        """The question with the gold document alone."""
        return self._first.oracle(sample)

    def record(self) -> Mapping[str, Any]:
        """The options, the templates, and what was found in the files."""
        return {**self._first.record(), "options": dict(self.settings), "data": dict(self.facts)}

    @property
    def _first(self) -> Placed:
        return next(iter(self.files.values()))


def published(
    *,
    files: str | Sequence[str],
    reorder: bool = True,
    count: int = 0,
    seed: int = 0,
    template: str | None = None,
    document_format: str | None = None,
    query_first: bool = False,
    closed_template: str = "built-in:closed-book",
) -> Published | Placed:
    """The samples of published files: a path, a pattern such as ``nq-open-20_*_gold_at_*.jsonl.gz``, or a list.

    Question files: records of ``question``, ``answers`` and ``ctxs``, each with ``title``, ``text`` and, on one of
    them, ``isgold``; other fields may be missing. Several files give several slots of the same questions; slots count
    from 0 as in the files' names, documents in a prompt from 1. A file with one document each (their oracle file) is
    a task of one slot. Key-value files: records of ``ordered_kv_records``, ``key`` and ``value``; one file, and the
    pair that is asked for moves. Where several files put a sample's other documents in different orders, the sample
    is counted in ``record()["data"]["unpaired"]``.

    Raises ``InvalidInput`` naming file and line; ``NotApplicable`` for records without documents.
    """
    at_least("count", count, 0), at_least("seed", seed, 0)
    paths = find_files(files)
    tables = {path: read_rows(path) for path in paths}
    pairs = {"ordered_kv_records" in rows[0].value for rows in tables.values()}
    if len(pairs) > 1 or (pairs == {True} and len(paths) > 1):
        raise invalid("files", "must be question files, or one key-value file", [path.name for path in paths])
    (is_pairs,) = pairs
    wording = template or ("built-in:key-value" if is_pairs else "built-in:questions")
    settings: dict[str, Any] = {"files": files if isinstance(files, str) else list(files), "reorder": reorder}
    settings |= {"count": count, "seed": seed, "template": template, "document_format": document_format}
    settings |= {"query_first": query_first, "closed_template": closed_template}
    found: dict[str, Any] = {"files": [path.name for path in paths], "sha256": digest(paths)}
    if is_pairs:
        items = [_pairs(row) for row in tables[paths[0]]]
        items = [items[at] for at in chosen(len(items), count, seed, paths[0].name)]
        shape = read_template(wording, PAIRS, document_format=document_format)
        return Placed("published", items, shape, None, settings, query_first, found)

    shape = read_template(wording, QUESTIONS, document_format=document_format)
    closed = read_template(closed_template, CLOSED)
    read = {path: _questions(path, rows) for path, rows in tables.items()}
    which = chosen(len(tables[paths[0]]), count, seed, paths[0].name)
    placed: dict[int, Placed] = {}
    for path, (slot, items) in read.items():
        _same_questions(path, items, paths[0], read[paths[0]][1])
        if slot in placed:
            raise InvalidInput(f"{path}: puts the gold document at slot {slot}, as another file does")
        placed[slot] = Placed("published", [items[at] for at in which], shape, closed, settings, query_first)
    first = next(iter(placed.values()))
    if {task.slots for task in placed.values()} != {first.slots}:
        raise invalid("files", "must all have the same number of documents", [task.slots for task in placed.values()])
    found |= {"slots_with_a_file": sorted(placed), **_counts(list(placed.values()))}
    return Published(placed, reorder, settings, found)


def _questions(path: Path, rows: Sequence[Row]) -> tuple[int, list[Item]]:
    """The slot of a file's gold documents, and its samples."""
    slots, items = set(), []
    for row in rows:
        slot, item = _question(row)
        slots.add(slot)
        items.append(item)
        if len(slots) > 1:
            raise row.wrong(f"its gold document is at slot {slot}, those before at {min(slots - {slot})}")
    said = GOLD_AT.search(path.name)
    (slot,) = slots
    if said and int(said.group(1)) != slot:
        raise InvalidInput(f"{path}: its name says gold at {said.group(1)}, its records have it at {slot} (from 0)")
    return slot, items


def _question(row: Row) -> tuple[int, Item]:
    question, answers = row.text(("question",)), row.texts(("answers",))
    ctxs = row.first(("ctxs",))
    if not ctxs:
        raise NotApplicable(
            f"{row.where}: has no ctxs, so there is no position to vary; every file with documents asks the same "
            "questions without them as its closed-book baseline"
        )
    if not isinstance(ctxs, list) or not all(isinstance(each, dict) for each in ctxs):
        raise row.wrong("ctxs must be a list of objects with title and text")
    gold = [at for at, each in enumerate(ctxs) if each.get("isgold")] or ([0] if len(ctxs) == 1 else [])
    if len(gold) != 1:
        raise row.wrong(f"must mark one of its {len(ctxs)} ctxs with isgold, it marks {len(gold)}")
    entries = [document(row, each, f"ctxs {number}") for number, each in enumerate(ctxs, 1)]
    others = (*entries[: gold[0]], *entries[gold[0] + 1 :])
    return gold[0], Item(row.name, {"question": question}, question, answers, entries[gold[0]], others)


def _pairs(row: Row) -> Item:
    key, value = row.text(("key",)), row.text(("value",))
    records = row.first(("ordered_kv_records",))
    if not isinstance(records, list) or not all(isinstance(each, list) and len(each) == 2 for each in records):
        raise row.wrong("ordered_kv_records must be a list of [key, value]")
    entries = [{"key": row.one(k, "key"), "value": row.one(v, "value")} for k, v in records]
    gold = {"key": key, "value": value}
    if entries.count(gold) != 1:
        raise row.wrong(f"holds the pair of key {key!a} {entries.count(gold)} times, expected once")
    others = tuple(entry for entry in entries if entry != gold)
    return Item(row.name, {"key": key}, key, (value,), gold, others)


def _same_questions(path: Path, items: Sequence[Item], first: Path, expected: Sequence[Item]) -> None:
    if len(items) != len(expected):
        raise InvalidInput(f"{path}: holds {len(items)} records, {first} {len(expected)}; they must ask the same")
    for item, other in zip(items, expected, strict=True):
        if item.question != other.question:
            raise InvalidInput(f"{path}: {item.name} asks another question than {other.name}")


def _counts(files: Sequence[Placed]) -> dict[str, int]:
    """What is said about the data: samples whose files disagree, and answers that stand in the wrong documents."""
    samples = list(zip(*(task.items for task in files), strict=True))
    first = files[0].items

    def holds(entry: Mapping[str, str], item: Item) -> bool:
        return any(occurs(answer, f"{entry['title']}\n{entry['text']}") for answer in item.answers)

    return {
        "unpaired": sum(len({str((item.gold, item.others)) for item in row}) > 1 for row in samples),
        "distractors_with_answer": sum(holds(entry, item) for item in first for entry in item.others),
        "gold_without_answer": sum(not holds(item.gold, item) for item in first),
    }


TASKS.register(
    "published",
    Kind(
        "The published lost-in-the-middle files, as they are.",
        published,
        {
            "files": "a .jsonl(.gz) file, a pattern with *, a folder, or a list of them",
            "reorder": "move the gold document to slots that have no file",
            **common("count", "seed", "template", "document_format", "query_first", "closed_template"),
        },
        data="files",
    ),
)
