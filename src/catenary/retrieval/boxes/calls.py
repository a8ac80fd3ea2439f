"""Boxes: prompts in, answers out; a callable as a scorer of the behavioural metrics alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from catenary.errors import InvalidInput
from catenary.provenance import versions
from catenary.retrieval.boxes.retry import Passing, Retry
from catenary.retrieval.case import Case
from catenary.retrieval.scoring.scored import Scored

Generate = Callable[[Sequence[str]], Sequence[str]]


class Box(Protocol):
    """Answers prompts, with results that say whether an answer ended and why a prompt was refused."""

    def answer(self, prompts: Sequence[str]) -> list[Scored]:
        """One result for each prompt."""
        ...

    def record(self) -> Mapping[str, Any]:
        """What it is, as JSON values, without secrets."""
        ...


class Callback:
    """A function of yours, ``generate(prompts) -> answers``.

    A ``ConnectionError`` or ``TimeoutError`` that it raises is taken to pass, and it is called again.
    """

    def __init__(self, generate: Generate, name: str, retry: Retry | None = None) -> None:
        """``name`` stands in the results' provenance; give another name to another model."""
        self._generate, self.name, self._retry = generate, name, retry or Retry()

    def answer(self, prompts: Sequence[str]) -> list[Scored]:
        """One result for each prompt; whether an answer ended is not known, it counts as ended.

        Raises:
            InvalidInput: answers that are no texts, or not as many as prompts; a failure that does not pass.
        """

        def call() -> Sequence[str]:
            try:
                return self._generate(prompts)
            except (ConnectionError, TimeoutError) as failure:
                raise Passing(f"{type(failure).__name__}: {failure}") from failure

        given = self._retry(call)
        wanted = f"generate must return {len(prompts)} texts, one for each prompt"
        if isinstance(given, str):
            raise InvalidInput(f"{wanted}, got one text")
        answers = list(given)
        if len(answers) != len(prompts) or not all(isinstance(answer, str) for answer in answers):
            kinds = sorted({type(answer).__name__ for answer in answers})
            raise InvalidInput(f"{wanted}, got {len(answers)} of {', '.join(kinds) or 'nothing'}")
        return [Scored(text=text, ended=True) for text in answers]

    def record(self) -> Mapping[str, Any]:
        """Its name."""
        return {"kind": "callable", "name": self.name}


class BoxScorer:
    """Scores what a box answers; there is no log-probability, and prompts are text without tokens."""

    has_logp = False

    def __init__(self, box: Box) -> None:
        """Score with ``box``."""
        self.box = box

    def settle(self, cases: Sequence[Case]) -> None:
        """Nothing to decide."""

    def score(self, cases: Sequence[Case]) -> list[Scored]:
        """One result for each case."""
        return self.box.answer([case.text for case in cases])

    def identity(self) -> dict[str, Any]:
        """The box's record and versions."""
        return {"box": dict(self.box.record()), "versions": versions()}

    def record(self) -> dict[str, Any]:
        """The same."""
        return self.identity()
