"""Tasks for learning from scratch: what is shown, what is asked at the last position, and where the answer lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from catenary.errors import invalid, unknown

KEYS, VALUES = 128, 8
"""Keys that a window draws its own from, and answers: chance is 1/8. Few, so that a task is learned in minutes."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Token t of window b is the sum of row ``keys[b, t]`` of one table and row ``values[b, t]`` of another.

    ``gold`` is the 0-based position of the answer, ``answers`` the value there.
    """

    keys: Int64[np.ndarray, "b L"]
    values: Int64[np.ndarray, "b L"]
    gold: Int64[np.ndarray, " b"]
    answers: Int64[np.ndarray, " b"]


@dataclass(frozen=True)
class Task:
    """A name, what is asked in words, and the key row of the last token, from the window's keys and gold."""

    name: str
    words: str
    ask: Callable[[Int64[np.ndarray, "b L"], Int64[np.ndarray, " b"]], Int64[np.ndarray, " b"]]

    def draw(self, gold: Int64[np.ndarray, " b"], length: int, generator: np.random.Generator) -> Batch:
        """Windows of ``length`` tokens whose answers lie at ``gold``, in 0..L-2.

        The first L - 1 tokens have distinct keys out of ``KEYS`` and independent values; the last token asks: its
        value row is ``VALUES``, one that no other token has.
        """
        check_length(length)
        keys = np.argsort(generator.random((len(gold), KEYS)), axis=1)[:, :length].astype(np.int64)
        values = generator.integers(0, VALUES, (len(gold), length))
        keys[:, -1] = self.ask(keys, gold)
        values[:, -1] = VALUES
        return Batch(keys, values, gold, values[np.arange(len(gold)), gold])


def key_rows(length: int) -> int:
    """Rows of the table of keys: the keys, and one row for every position that can be named."""
    return KEYS + length - 1


def check_length(length: int) -> None:
    """Refuse windows for which there are not enough distinct keys, or too few positions to compare."""
    if not 16 <= length <= KEYS:
        raise invalid("length", f"must be in 16..{KEYS} for a task, which has {KEYS} keys", length)


def _same_key(keys: Int64[np.ndarray, "b L"], gold: Int64[np.ndarray, " b"]) -> Int64[np.ndarray, " b"]:
    return np.asarray(keys[np.arange(len(gold)), gold])


def _position(keys: Int64[np.ndarray, "b L"], gold: Int64[np.ndarray, " b"]) -> Int64[np.ndarray, " b"]:
    return np.asarray(KEYS + gold)


TASKS: Mapping[str, Task] = {
    "lookup": Task("lookup", "the value that stands beside the same key", _same_key),
    "place": Task("place", "the value at the position that is named", _position),
}


def find_task(name: str) -> Task:
    """The task of that name; ``InvalidInput`` with the nearest one otherwise."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def places(length: int, stride: int) -> Int64[np.ndarray, " k"]:
    """The positions that are asked about: 0, s, 2s, ... up to L - 2."""
    return np.arange(0, length - 1, stride, dtype=np.int64)


def balanced(asked: Int64[np.ndarray, " k"], count: int, generator: np.random.Generator) -> Int64[np.ndarray, " b"]:
    """``count`` of the positions asked about, each equally often up to one."""
    turns = -(-count // len(asked))
    return np.concatenate([generator.permutation(asked) for _ in range(turns)])[:count]
