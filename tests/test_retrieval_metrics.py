"""Metrics of a generated answer: against cases worked out by hand, and where they part ways."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.retrieval.case import Case, Segment
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.scoring.metrics import (
    best_subspan,
    contains,
    disagreements,
    exact,
    first_line,
    judge,
    kv_accuracy,
    normalise,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  Eiffel\tTower!", "eiffel tower"), ("an A-B test", "ab test"), ("theory of a banana", "theory of banana"),
        ("ÉCOLE, Œuvre", "école œuvre"), ("«Zürich»", "«zürich»"), ("the", ""), ("3.5 %", "35"), ("", ""),
    ],
)  # fmt: skip
def test_normalisation(text: str, wanted: str) -> None:
    assert normalise(text) == wanted


# answers, generation, exact, contains, best subspan
CASES = [
    (("Paris",), " Paris\n", 1, 1, 1),
    (("Paris",), "The Paris.", 1, 1, 1),
    (("Paris",), "It is Paris, France", 0, 1, 1),
    (("Paris",), "Lyon\nParis", 0, 1, 0),
    (("Paris",), "\n\n Paris\nLyon", 1, 1, 1),
    (("New York", "NYC"), "nyc", 1, 1, 1),
    (("New York",), "new  york", 1, 0, 1),
    (("3.5",), "35", 1, 0, 1),
    (("Zürich",), "ZÜRICH", 1, 1, 1),
    (("東京",), "答えは東京です", 0, 1, 1),
    (("A",), "B", 0, 0, 0),
    (("A",), "A", 1, 1, 1),
    (("A",), "Paris", 0, 1, 0),
    (("A",), "(A) is right", 0, 1, 1),
    (("!",), "!", 1, 1, 1),
    (("!",), "no", 0, 0, 0),
    (("the",), "the", 1, 1, 1),
    (("x",), "", 0, 0, 0),
    (("b1f3-22",), '"b1f3-22",', 1, 1, 1),
]


@pytest.mark.parametrize(("answers", "text", "equal", "inside", "subspan"), CASES)
def test_three_metrics(answers: tuple[str, ...], text: str, equal: int, inside: int, subspan: int) -> None:
    assert judge(answers, text) == {"exact": equal, "contains": inside, "best_subspan": subspan}
    assert (exact(answers, text), contains(answers, text), best_subspan(answers, text)) == (equal, inside, subspan)
    assert kv_accuracy(answers, text) == inside


def test_first_line() -> None:
    assert first_line("\n  one two \nthree") == "one two"
    assert first_line("") == ""


class Two:
    """Two samples that both ask for Paris."""

    name, slots = "two", 2

    def __len__(self) -> int:
        return 2

    def case(self, sample: int, slot: int) -> Case:
        return Case(f"s{sample}", (Segment("x", slot),), ("Paris",), slot)

    def closed_book(self, sample: int) -> None:
        return None

    def oracle(self, sample: int) -> None:
        return None

    def record(self) -> dict[str, str]:
        return {}


def test_disagreements_are_listed_and_skips_are_none() -> None:
    answers = [["Paris", "in Paris"], ["Lyon", ""]]
    judged = [[judge(("Paris",), text) for text in row] for row in answers]
    values = {name: np.array([[cell[name] for cell in row] for row in judged]) for name in judged[0][0]}
    values = {name: np.where([[True, True], [True, False]], table, np.nan) for name, table in values.items()}
    outcomes = Outcomes("two", ("s0", "s1"), (0, 1), 2, values, [["", ""], ["", "too long"]], answers, [[1, 1], [1, 1]])
    (found,) = disagreements(outcomes, Two())
    assert (found.sample, found.slot, found.text) == ("s0", 1, "in Paris")
    assert found.metrics == {"exact": 0, "contains": 1, "best_subspan": 1}
