"""What a task's data left out or could not keep apart, in words: the counts of its record, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {
    "too_few_documents": "records with fewer usable documents than a prompt holds are left out",
    "distractors_with_answer_dropped": "distractors that hold an answer were dropped",
    "unpaired": "samples have their other documents in another order in another file, so their slots are not paired",
    "distractors_with_answer": "documents beside the gold one hold an answer too",
    "gold_without_answer": "gold documents do not spell out an answer",
}
"""Counts of ``record()["data"]`` and what each says; the rest of the record is no news to a reader."""


def left_out(record: Mapping[str, Any]) -> list[str]:
    """One sentence for each count of a task's record that is not 0.

    >>> left_out({"data": {"records": 9, "too_few_documents": 0, "distractors_with_answer_dropped": 3}})
    ['Data: 3 distractors that hold an answer were dropped.']
    """
    data = record.get("data") or {}
    return [f"Data: {data[name]:,} {words}." for name, words in WORDS.items() if data.get(name)]
