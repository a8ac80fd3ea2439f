"""Whether a generated text answers: exact, contains and best subspan side by side, and where they disagree."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from catenary.retrieval.case import Task
from catenary.retrieval.outcomes import Outcomes

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation, without English articles, white space as single spaces.

    The normalisation of QA answers in use since SQuAD (arXiv 1606.05250), and of lost-in-the-middle (arXiv
    2307.03172).
    """
    return " ".join(_ARTICLES.sub(" ", _plain(text)).split())


def first_line(text: str) -> str:
    """The text up to its first line end, after white space around it is gone."""
    return text.strip().split("\n", 1)[0].strip()


def exact(answers: Sequence[str], text: str) -> bool:
    """Whether the generation's first line is one of the answers, both normalised."""
    line = first_line(text)
    return any(_same(answer, line) for answer in answers)


def contains(answers: Sequence[str], text: str) -> bool:
    """Whether one of the answers stands anywhere in the generation, letter case aside."""
    whole = text.lower()
    return any(answer.strip().lower() in whole for answer in answers)


def best_subspan(answers: Sequence[str], text: str) -> bool:
    """Whether one of the answers stands in the generation's first line, both normalised.

    ``best_subspan_em`` of lost-in-the-middle (arXiv 2307.03172). An answer that the normalisation leaves nothing of
    (the letter A, a lone sign) is in every text then: here it must be a word of the line.
    """
    line = first_line(text)
    return any(_within(answer, line) for answer in answers)


def kv_accuracy(answers: Sequence[str], text: str) -> bool:
    """Whether a value stands anywhere in the generation: what lost-in-the-middle calls accuracy of key-value tasks."""
    return contains(answers, text)


JUDGES = {"exact": exact, "contains": contains, "best_subspan": best_subspan}
"""From the metric's name to its judge of (answers, generated text)."""


def judge(answers: Sequence[str], text: str) -> dict[str, float]:
    """Every behavioural metric of one generation, 1 or 0."""
    return {name: float(judged(answers, text)) for name, judged in JUDGES.items()}


@dataclass(frozen=True)
class Disagreement:
    """A generation that one metric counts and another does not."""

    sample: str
    slot: int
    answers: tuple[str, ...]
    text: str
    metrics: dict[str, float]


def disagreements(outcomes: Outcomes, task: Task) -> tuple[Disagreement, ...]:
    """Every generation on which exact, contains and best subspan are not of one mind, in order of sample and slot."""
    found = []
    names = [name for name in JUDGES if name in outcomes.values]
    for row, sample in enumerate(outcomes.samples):
        for column, slot in enumerate(outcomes.slots):
            metrics = {name: float(outcomes.values[name][row, column]) for name in names}
            if not outcomes.skipped[row][column] and len(set(metrics.values())) > 1:
                answers = task.case(row, slot).answers
                found.append(Disagreement(sample, slot, answers, outcomes.answers[row][column], metrics))
    return tuple(found)


def _plain(text: str) -> str:
    return text.lower().translate(_NO_PUNCTUATION)


def _same(answer: str, line: str) -> bool:
    wanted = normalise(answer)
    if wanted:
        return wanted == normalise(line)
    return _bare(answer) == _bare(line)


def _within(answer: str, line: str) -> bool:
    wanted = normalise(answer)
    if wanted:
        return wanted in normalise(line)
    return _bare(answer) in {_bare(word) for word in line.split()}


def _bare(text: str) -> str:
    """Without punctuation, where that leaves something; the text itself where it is punctuation only."""
    return " ".join(_plain(text).split()) or text.strip()
