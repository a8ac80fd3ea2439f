"""Questions with documents of your own: a JSONL file of question, answers, the gold document and distractors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput
from catenary.retrieval.tasks.placed import Entry, Item, Placed, occurs
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.rows import Row, chosen, digest, read_rows
from catenary.retrieval.tasks.template import CLOSED, QUESTIONS, read_template

QUESTION = ("question", "query")
ANSWERS = ("answers", "answer", "gold_answers", "short_answers")
GOLD = ("gold", "gold_document", "positive", "positives", "positive_ctxs", "context")
DISTRACTORS = ("distractors", "negatives", "negative", "negative_ctxs", "hard_negative_ctxs")
TITLE = ("title",)
TEXT = ("text", "contents", "content", "passage", "body")


def questions(
    *,
    file: str,
    documents: int = 0,
    check: bool = True,
    count: int = 0,
    seed: int = 0,
    template: str = "built-in:questions",
    document_format: str | None = None,
    query_first: bool = False,
    closed_template: str = "built-in:closed-book",
) -> Placed:
    """The questions of a ``.jsonl`` or ``.jsonl.gz`` file, each with ``documents`` documents, the gold one among them.

    A record holds a question, its answers (a text or a list), the gold document and a list of distractors; a document
    is a text or an object with ``text`` and perhaps ``title``. Other names for the fields are in ``QUESTION``,
    ``ANSWERS``, ``GOLD``, ``DISTRACTORS`` and ``TEXT``. Of several gold documents the first is used. The first
    distractors are used, in their order, except those that hold an answer as whole words; ``documents`` 0 takes as
    many as the record with the fewest has. Records with fewer are left out. Both are counted in ``record()["data"]``.

    Raises ``InvalidInput`` naming file and line for a record that cannot be used, such as one whose gold document
    holds none of its answers (unless ``check`` is false, for answers such as yes and no).
    """
    at_least("documents", documents, 0), at_least("count", count, 0), at_least("seed", seed, 0)
    path = Path(file)
    read = [_item(row, check) for row in read_rows(path)]
    items = [item for item, _ in read]
    wanted = documents or min(len(item.others) for item in items) + 1
    kept = [item for item in items if len(item.others) >= wanted - 1]
    if not kept:
        most = max(len(item.others) for item in items) + 1
        raise InvalidInput(f"documents: no record of {path} has {wanted} usable documents; the most is {most}")
    which = chosen(len(kept), count, seed, f"{path} (with {wanted} documents or more)")
    cut = [_first(kept[at], wanted - 1) for at in which]
    settings: dict[str, Any] = {"file": file, "documents": documents, "check": check, "count": count, "seed": seed}
    settings |= {"template": template, "document_format": document_format, "query_first": query_first}
    settings |= {"closed_template": closed_template}
    found = {
        "records": len(items),
        "too_few_documents": len(items) - len(kept),
        "distractors_with_answer_dropped": sum(dropped for _, dropped in read),
        "sha256": digest([path]),
    }
    wording = read_template(template, QUESTIONS, document_format=document_format)
    closed = read_template(closed_template, CLOSED)
    return Placed("questions", cut, wording, closed, settings, query_first, found)


def document(row: Row, value: object, what: str) -> Entry:
    """A document of a record: a text, or an object with a text and perhaps a title."""
    if isinstance(value, dict):
        part = Row(value, f"{row.where}, {what}", row.name)
        title = part.first(TITLE)
        return {"title": "" if title in (None, "") else part.one(title, "title"), "text": part.text(TEXT)}
    return {"title": "", "text": row.one(value, what)}


def _item(row: Row, check: bool) -> tuple[Item, int]:
    """The sample of a row, and how many distractors were dropped because they hold an answer."""
    question, answers = row.text(QUESTION), row.texts(ANSWERS)
    held = row.first(GOLD)
    if held in (None, []):
        raise row.wrong(f"has no gold document ({', '.join(GOLD)})")
    gold = document(row, held[0] if isinstance(held, list) else held, "gold")
    others = row.first(DISTRACTORS)
    if others is not None and not isinstance(others, list):
        raise row.wrong("distractors must be a list of documents")
    if check and not any(occurs(answer, f"{gold['title']}\n{gold['text']}") for answer in answers):
        raise row.wrong(
            f"its gold document holds none of the answers {ascii(list(answers))[:80]}; "
            "if answers are not spelled out in documents, set check=False"
        )
    entries = [document(row, each, f"distractor {number}") for number, each in enumerate(others or (), 1)]
    usable = [each for each in entries if not _holds(each, answers)]
    item = Item(row.name, {"question": question}, question, answers, gold, tuple(usable))
    return item, len(entries) - len(usable)


def _holds(entry: Entry, answers: tuple[str, ...]) -> bool:
    return any(occurs(answer, f"{entry['title']}\n{entry['text']}") for answer in answers)


def _first(item: Item, others: int) -> Item:
    return Item(item.name, item.query, item.question, item.answers, item.gold, item.others[:others])


TASKS.register(
    "questions",
    Kind(
        "Your questions and documents: a JSONL file of question, answers, gold and distractors.",
        questions,
        {
            "file": "the .jsonl or .jsonl.gz file",
            "documents": "how many documents a prompt holds; 0 for as many as every record has",
            "check": "whether a gold document must spell out one of the answers",
            **common("count", "seed", "template", "document_format", "query_first", "closed_template"),
        },
        data="file",
    ),
)
