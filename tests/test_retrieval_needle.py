"""Needles: where they land, in texts of every kind, and texts that are too short."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.tasks import load_task, rebuild_task
from catenary.retrieval.tasks.haystack import fit, places


def folder(path: Path, *texts: str) -> str:
    path.mkdir()
    for number, text in enumerate(texts):
        (path / f"{number}.txt").write_text(text, encoding="utf-8")
    return str(path)


def haystack(task: Any, sample: int, slot: int) -> tuple[str, str]:
    """The text before and after the needle, from the prompt."""
    case = task.case(sample, slot)
    start, end = case.spans()[slot]
    head, tail = task.template.prompt.parts[0], task.template.prompt.parts[2]
    assert case.text.startswith(head)
    return case.text[len(head) : start], case.text[end : case.text.index(tail)]


def test_depths_run_from_the_beginning_to_the_end_at_sentence_ends() -> None:
    task: Any = load_task("needle", length=3000, depths=7, count=4)
    assert task.record()["data"]["places"] == {"sentences": 4}
    shifts = []
    for sample in range(4):
        for slot in range(7):
            before, after = haystack(task, sample, slot)
            assert not before or re.search(r"[.]\s+$", before), before[-40:]
            assert not after.strip() or after.strip()[0].isupper()
            whole = len(task.samples[sample].haystack)
            assert 2850 < whole <= 3000
            shifts.append(abs(len(before) / whole - slot / 6))
        assert haystack(task, sample, 0)[0] == ""
        assert haystack(task, sample, 6)[1] == ""
    # Sentences have up to 110 characters: no place is farther than half of one from its depth, and one at the end.
    assert max(shifts) < 110 / 3000
    assert task.record()["data"]["largest_shift"] == pytest.approx(max(shifts), abs=2 / 3000)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("One two three. " * 60, "sentences"),
        ("one two three " * 60, "white space"),
        ("一二三四五六七八九十" * 60, "characters"),
        ("一二三四五。" * 90, "sentences"),
        ("Wörter und Sätze! „Noch einer.“ Ende?\n" * 30, "sentences"),
        ("word\n" * 200, "white space"),
        ("🙂" * 300, "characters"),
    ],
)
def test_a_text_without_full_stops(tmp_path: Path, text: str, kind: str) -> None:
    task: Any = load_task("needle", documents=folder(tmp_path / "d", text), length=300, depths=6, count=2)
    assert task.record()["data"]["places"] == {kind: 2}
    for slot in range(6):
        before, after = haystack(task, 0, slot)
        joined = before + after
        assert "".join(joined.split()) == "".join(task.samples[0].haystack.split())
        assert text.strip().startswith(before.strip())
        if kind == "white space":
            assert not before or before[-1].isspace()


@given(st.text(alphabet="ab. 。!\n", max_size=80), st.integers(1, 6))
def test_places_are_different_rising_and_nearest(text: str, depths: int) -> None:
    try:
        found, kind = places(text, depths)
    except InvalidInput:
        return
    assert len(found) == depths
    assert list(found) == sorted(set(found))
    assert found[0] >= 0
    assert found[-1] <= len(text)
    ends = {0, len(text)} | {
        at for at in range(1, len(text) + 1)
        if _is_end(text, at, kind)
    }
    for step, at in enumerate(found):
        goal = round(len(text) * step / max(depths - 1, 1))
        assert at in ends
        assert abs(at - goal) == min(abs(end - goal) for end in ends)


def _is_end(text: str, at: int, kind: str) -> bool:
    """Whether a place follows what its kind says, by looking at the characters around it."""
    last, blank_next = text[at - 1], text[at : at + 1].isspace()
    if kind == "characters":
        return not last.isspace()
    if kind == "white space":
        return last.isspace() and not blank_next
    word = text[:at].rstrip()
    return not blank_next and (word[-1:] == "。" or (word[-1:] in ("!", ".") and last.isspace()))


@given(st.text(alphabet="abc \n漢", max_size=60), st.integers(0, 40), st.booleans())
def test_a_haystack_is_never_longer_than_asked(text: str, length: int, in_words: bool) -> None:
    def count(part: str) -> int:
        return len(part.split())

    cut = fit(text, length, count if in_words else None)
    assert text.startswith(cut)
    assert (count(cut) if in_words else len(cut)) <= length
    if in_words and count(text) > length:
        assert count(cut) == length  # a word more would be too long


def test_length_in_tokens_and_rebuilding_without_the_tokenizer(tmp_path: Path) -> None:
    def tokens(text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    texts = [f"Document {n} says a thing. " * 40 for n in range(30)]
    for documents in (None, folder(tmp_path / "d", *texts)):
        task: Any = load_task("needle", length=200, tokens=tokens, documents=documents, depths=4, count=5)
        sizes = [tokens(sample.haystack) for sample in task.samples]
        assert all(180 <= size <= 200 for size in sizes), sizes  # a sentence may be left out
        record = json.loads(json.dumps(task.record()))
        assert record["data"]["length_in"] == "tokens"
        again = rebuild_task(record)
        assert [again.case(n, s) for n in range(5) for s in range(4)] == [
            task.case(n, s) for n in range(5) for s in range(4)
        ]
    with pytest.raises(InvalidInput, match="length: 99999 tokens were asked for and all documents together have"):
        load_task("needle", length=99999, tokens=tokens, documents=str(tmp_path / "d"))
    with pytest.raises(InvalidInput, match="cuts must hold one length for each of 20 samples"):
        load_task("needle", cuts=[1])


def test_the_number_is_nowhere_in_the_text(tmp_path: Path) -> None:
    used = " ".join(str(n) for n in range(10, 99))
    task = load_task("needle", documents=folder(tmp_path / "d", used), length=len(used), digits=2, depths=3, count=3)
    assert [task.case(n, 1).answers for n in range(3)] == [("99",)] * 3
    full = folder(tmp_path / "e", used + " 99")
    with pytest.raises(InvalidInput, match="the text holds every number of 2 digits"):
        load_task("needle", documents=full, length=len(used) + 3, digits=2, depths=3)


def test_your_own_needle(tmp_path: Path) -> None:
    own = {"fact": "The best bread is rye.", "question": "Which bread is best?", "answer": "rye"}
    documents = folder(tmp_path / "d", "Some rye here. " * 50, "Wheat grows. " * 80)
    task = load_task("needle", documents=documents, length=300, depths=3, count=2, **own)
    assert task.record()["data"]["documents_with_answer_left_out"] == 1
    case, closed = task.case(0, 1), task.closed_book(0)
    assert case.text.count("rye") == 1
    assert case.answers == ("rye",)
    assert closed is not None
    assert "Which bread is best?" in closed.text
    assert load_task("needle").closed_book(0) is None
    with pytest.raises(InvalidInput, match="fact question and answer must be given together"):
        load_task("needle", fact="x")
    with pytest.raises(InvalidInput, match="answer must be a part of the fact"):
        load_task("needle", **own | {"answer": "wheat"})
    with pytest.raises(MissingResource, match=r"holds no text to use .*1 that hold the answer"):
        load_task("needle", documents=str(Path(documents) / "0.txt"), length=10, **own)
    with pytest.raises(InvalidInput, match="answer: the haystack of sample 0 holds 'the'"):
        load_task("needle", fact="see the hat", question="?", answer="the")


def test_texts_that_are_too_short_or_not_there(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(MissingResource, match=r"holds no text to use .nothing in it"):
        load_task("needle", documents=str(empty))
    (empty / "a.txt").write_text("  \n")
    with pytest.raises(MissingResource, match="1 empty"):
        load_task("needle", documents=str(empty))
    short = folder(tmp_path / "short", "Some text.", "More of it.")
    with pytest.raises(InvalidInput, match="4000 characters were asked for and 'short' holds 23; ask for at most 23"):
        load_task("needle", documents=short)
    assert load_task("needle", documents=short, length=23, depths=2).slots == 2
    with pytest.raises(InvalidInput, match="no 10 different places for a sentence; ask for fewer depths"):
        load_task("needle", length=64)
    assert load_task("needle", length=64, depths=4).record()["data"]["places"] == {"white space": 20}
    assert load_task("needle", length=64, depths=1).slots == 1


def test_documents_are_joined_in_a_seeded_order(tmp_path: Path) -> None:
    texts = [f"Text {chr(97 + n)} is here. " * 12 for n in range(6)]
    task: Any = load_task("needle", documents=folder(tmp_path / "d", *texts), length=700, depths=3, count=12)
    starts = {sample.haystack[:6] for sample in task.samples}
    assert len(starts) > 2
    assert starts <= {text[:6] for text in texts}
    generator = np.random.default_rng(0)
    assert generator.permutation(6).tolist() != list(range(6))
