"""Retrieval tasks: what every registered one promises, and what is particular to each."""

from __future__ import annotations

import gzip
import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catenary.errors import InvalidInput, MissingResource, NotApplicable
from catenary.retrieval.case import Case, Task
from catenary.retrieval.tasks import TASKS, load_task, rebuild_task
from catenary.retrieval.tasks.placed import occurs
from catenary.retrieval.tasks.words import NOUNS, prose
from retrieval_files import (
    published_record,
    questions,
    write_factbook,
    write_lines,
    write_published,
    write_published_pairs,
)


@dataclass(frozen=True)
class Expected:
    """What one kind is made with in the contract, and which promises do not apply to it."""

    options: Callable[[Path], dict[str, Any]]
    slots: int
    closed: bool = False
    oracle: bool = True
    same_question: bool = True
    all_spans: bool = True


ROWS = {
    "key-value": Expected(lambda _: {"pairs": 5, "prefix": 13, "count": 6}, 5),
    "key-value-digits": Expected(lambda _: {"pairs": 5, "digits": 4, "count": 6}, 5),
    "facts": Expected(lambda p: {"documents": 4, "count": 6, "folder": str(write_factbook(p / "f"))}, 4, closed=True),
    "questions": Expected(lambda p: {"file": str(write_lines(p / "q.jsonl", questions()))}, 5, closed=True),
    "published": Expected(lambda p: {"files": write_published(p)}, 5, closed=True),
    "needle": Expected(lambda _: {"length": 900, "depths": 5, "count": 6}, 5, all_spans=False),
    "list-order": Expected(lambda _: {"items": 6, "count": 6}, 6, oracle=False, same_question=False),
    "ab-order": Expected(lambda _: {"count": 6}, 2, oracle=False),
}


@pytest.fixture(params=list(TASKS))
def kind(request: pytest.FixtureRequest) -> str:
    assert request.param in ROWS, "a registered task without a row in this test"
    return str(request.param)


@pytest.fixture
def made(kind: str, tmp_path: Path) -> tuple[Task, Expected, dict[str, Any]]:
    row = ROWS[kind]
    options = row.options(tmp_path)
    return load_task(kind, **options), row, options


def documents(case: Case) -> list[str]:
    """The text of each slot, from the spans."""
    return [case.text[a:b] for _, (a, b) in sorted(case.spans().items())]


def outside(case: Case) -> str:
    """The prompt with its slots cut out."""
    text = case.text
    for start, end in sorted(case.spans().values(), reverse=True):
        text = text[:start] + text[end:]
    return text


def without_places(text: str) -> str:
    """A document without the number or letter of its place, which is all that may change when it moves."""
    head, _, body = text.partition(" ")
    if head == "Document":
        return body.lstrip("0123456789")
    return body if head.rstrip(".").isdigit() or head in ("A.", "B.") else text


def test_every_option_is_described(kind: str) -> None:
    entry = TASKS[kind]
    assert set(entry.options) == set(entry.defaults())
    assert all(len(said) > 10 for said in entry.options.values())
    assert entry.data == "" or entry.data in entry.options


def test_only_the_place_of_the_fact_changes(made: tuple[Task, Expected, dict[str, Any]]) -> None:
    task, row, _ = made
    assert isinstance(task, Task)
    assert task.slots == row.slots
    assert len(task) >= 6
    for sample in range(len(task)):
        cases = [task.case(sample, slot) for slot in range(task.slots)]
        assert len({(case.sample, case.answers, case.lead) for case in cases}) == 1
        assert len({case.question for case in cases}) == (1 if row.same_question else task.slots)
        assert [case.gold for case in cases] == list(range(task.slots))
        rests = []
        for slot, case in enumerate(cases):
            assert case.text == "".join(segment.text for segment in case.segments)
            spans = case.spans()
            assert set(spans) == (set(range(task.slots)) if row.all_spans else {slot})
            start, end = spans[slot]
            gold = case.text[start:end]
            assert any(occurs(answer, gold) for answer in case.answers)
            others = [case.text[a:b] for s, (a, b) in sorted(spans.items()) if s != slot]
            assert not any(occurs(answer, other, whole=False) for answer in case.answers for other in others)
            if row.same_question:  # and the answer is nowhere outside the fact's own document
                assert not any(occurs(answer, outside(case), whole=False) for answer in case.answers)
            rests.append(([without_places(other) for other in others], without_places(gold)))
        assert all(rest == rests[0] for rest in rests)
        if row.same_question and row.all_spans:
            assert len({outside(case) for case in cases}) == 1
        if not row.all_spans:  # the text around a needle is the same text
            assert len({"".join(outside(case).split()) for case in cases}) == 1
    assert len({task.case(sample, 0).sample for sample in range(len(task))}) == len(task)


def test_the_first_character_of_an_answer_is_its_own(made: tuple[Task, Expected, dict[str, Any]]) -> None:
    task, _, _ = made
    case = task.case(0, 0)
    assert all(answer == answer.strip() for answer in case.answers)
    joined = case.text + case.lead
    assert joined[-1].isspace() or joined[-1] == '"'
    assert not case.lead or not case.text[-1].isspace()


def test_baselines(made: tuple[Task, Expected, dict[str, Any]]) -> None:
    task, row, _ = made
    for sample in range(len(task)):
        closed, oracle, case = task.closed_book(sample), task.oracle(sample), task.case(sample, 0)
        assert (closed is not None, oracle is not None) == (row.closed, row.oracle)
        if closed is not None:
            assert (closed.sample, closed.answers, closed.gold, closed.spans()) == (case.sample, case.answers, None, {})
            assert case.question in closed.text
            assert not any(answer in closed.text for answer in closed.answers)
        if oracle is not None:
            assert (oracle.sample, oracle.answers, oracle.gold) == (case.sample, case.answers, 0)
            assert set(oracle.spans()) == {0}
            assert any(answer in documents(oracle)[0] for answer in oracle.answers)
            assert len(oracle.text) < len(case.text)


def test_a_task_is_rebuilt_from_its_record(made: tuple[Task, Expected, dict[str, Any]], kind: str) -> None:
    task, _, _ = made
    record = json.loads(json.dumps(task.record()))
    assert record["task"] == kind == task.name
    again = rebuild_task(record)
    assert [again.case(n, s) for n in range(len(task)) for s in range(task.slots)] == [
        task.case(n, s) for n in range(len(task)) for s in range(task.slots)
    ]
    record["templates"]["template"] += "?"
    with pytest.raises(InvalidInput, match="its templates changed since it was recorded"):
        rebuild_task(record)


def test_the_seed_decides_and_a_larger_count_only_adds(kind: str, tmp_path: Path) -> None:
    options = ROWS[kind].options(tmp_path)
    few, many = ({**options, "count": count} for count in (2, 4))
    small, large, other = load_task(kind, **few), load_task(kind, **many), load_task(kind, **many, seed=1)
    assert [small.case(n, 1) for n in range(2)] == [large.case(n, 1) for n in range(2)]
    assert [large.case(n, 1) for n in range(4)] != [other.case(n, 1) for n in range(4)]


def test_places_outside_the_prompt_are_refused(made: tuple[Task, Expected, dict[str, Any]]) -> None:
    task, _, _ = made
    for sample, slot in ((0, -1), (0, task.slots), (-1, 0), (len(task), 0)):
        with pytest.raises(InvalidInput, match=r"must be in 0\.\."):
            task.case(sample, slot)
    for baseline in (task.closed_book, task.oracle):
        with pytest.raises(InvalidInput, match="sample must be in"):
            baseline(-1)


def test_asking_first_puts_the_question_in_front(kind: str, tmp_path: Path) -> None:
    options = ROWS[kind].options(tmp_path)
    plain, asked = load_task(kind, **options).case(1, 1), load_task(kind, **options, query_first=True).case(1, 1)
    assert asked.text.endswith(plain.text)
    assert plain.question in asked.text.removesuffix(plain.text)
    assert documents(asked) == documents(plain)


def test_unknown_names_and_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"unknown retrieval task or file 'key-vale'. Did you mean 'key-value'"):
        load_task("key-vale")
    with pytest.raises(InvalidInput, match=r"unknown option of needle 'lenght'. Did you mean 'length'"):
        load_task("needle", lenght=3)
    with pytest.raises(InvalidInput, match=r"questions: needs file \(the \.jsonl"):
        load_task("questions")
    for name, options in (("needle", {"length": 0}), ("facts", {"count": -1}), ("key-value", {"pairs": True})):
        with pytest.raises(InvalidInput, match="must be a whole number >="):
            load_task(name, **options)


def test_a_path_says_what_it_is(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("Some text.")
    own = write_lines(tmp_path / "own.jsonl", questions())
    pairs = [{"question": "q?", "options": ["left", "right"]}]
    published = tmp_path / "published"
    published.mkdir()
    for source, name in (
        (str(own), "questions"),
        (write_published(published), "published"),
        (str(published), "published"),
        (str(write_published_pairs(tmp_path)), "published"),
        (str(write_factbook(tmp_path / "demo" / "factbook")), "facts"),
        (str(tmp_path / "demo"), "facts"),
        (str(write_lines(tmp_path / "pairs.jsonl", pairs)), "ab-order"),
    ):
        task = load_task(source, **({"count": 3, "documents": 4} if name == "facts" else {}))
        assert task.name == name
        assert rebuild_task(task.record()).case(0, 1) == task.case(0, 1)
    with pytest.raises(InvalidInput, match=r"a folder of texts holds no questions. It can be a haystack"):
        load_task(str(texts))
    with pytest.raises(InvalidInput, match=r"line 1: is no task: .* it has text. Texts alone can be a haystack"):
        load_task(str(write_lines(tmp_path / "texts.jsonl", [{"text": "x"}])))
    with pytest.raises(InvalidInput, match="line 1: holds a question without documents"):
        load_task(str(write_lines(tmp_path / "closed.jsonl", [{"question": "q", "answers": ["a"]}])))
    with pytest.raises(MissingResource, match=r"no .jsonl or .jsonl.gz file"):
        load_task(str(tmp_path / "none.jsonl"))


# Key-value pairs


@pytest.mark.parametrize("prefix", [36, 13])
def test_keys_and_values_are_version_4_uuids(prefix: int) -> None:
    case = load_task("key-value", pairs=20, prefix=prefix, count=1).case(0, 3)
    start = case.text.index("{")
    table = json.loads(case.text[start : case.text.index("}") + 1])
    assert len(table) == 20
    texts = [*table, *table.values()]
    assert len(set(texts)) == 40
    assert table[case.question] == case.answers[0]
    assert list(table).index(case.question) == 3
    for text in texts:
        assert len(text) == prefix
        assert uuid.UUID(text.ljust(36, "0") if prefix == 36 else f"{text}-4000-8000-{'0' * 12}")
        assert prefix < 36 or uuid.UUID(text).version == 4


def test_digits_and_too_few_of_them() -> None:
    case = load_task("key-value-digits", pairs=20, digits=2, count=1).case(0, 19)
    table = json.loads(case.text[case.text.index("{") : case.text.index("}") + 1])
    assert {len(text) for text in [*table, *table.values()]} == {2}
    assert len({*table, *table.values()}) == 40
    with pytest.raises(InvalidInput, match="digits must leave at least 80 numbers for 20 pairs, got 1"):
        load_task("key-value-digits", digits=1)
    with pytest.raises(InvalidInput, match="40 different keys and values were not found"):
        load_task("key-value", prefix=1)
    for prefix in (0, 37, 1.5):
        with pytest.raises(InvalidInput, match=r"prefix must be in 1\.\.36"):
            load_task("key-value", prefix=prefix)


def test_one_pair_and_a_one_character_answer(tmp_path: Path) -> None:
    task = load_task("key-value", pairs=1, prefix=1, count=3)
    assert task.slots == 1
    assert len(task.case(0, 0).answers[0]) == 1


# Order


@pytest.mark.parametrize("ask", ["number", "next"])
def test_the_list_gives_the_answer(ask: str) -> None:
    task = load_task("list-order", ask=ask, items=7, count=5)
    assert task.slots == (7 if ask == "number" else 6)
    for sample in range(5):
        for slot in range(task.slots):
            case = task.case(sample, slot)
            block = case.text.split("\n\n")[1]
            words = [line.split(" ", 1)[1] for line in block.split("\n")]
            if ask == "number":
                assert case.question == f"Which word is number {slot + 1}?"
                assert words[slot] == case.answers[0]
            else:
                cue = case.question.split()[-1].rstrip("?")
                assert words[words.index(cue) + 1] == case.answers[0]
                assert words.index(cue) == slot
                assert set(case.spans()) == set(range(6))
                assert documents(case)[slot] == f"- {cue}\n- {case.answers[0]}"
    with pytest.raises(InvalidInput, match="ask must be 'number' or 'next'"):
        load_task("list-order", ask="last")
    with pytest.raises(InvalidInput, match=r"items must be in 2\.\."):
        load_task("list-order", items=1000)


def test_no_word_of_the_list_is_part_of_another() -> None:
    assert len(set(NOUNS)) == len(NOUNS)
    assert not [(a, b) for a in NOUNS for b in NOUNS if a != b and a in b]
    assert not any(character.isdigit() for character in prose(5000, np.random.default_rng(0)))


def test_both_words_of_a_pair_are_answers_in_both_orders(tmp_path: Path) -> None:
    task = load_task("ab-order", count=8)
    seen: Counter[tuple[str, ...]] = Counter()
    for sample in range(0, 8, 2):
        one, two = task.case(sample, 0), task.case(sample + 1, 1)
        assert one.text == two.text  # the same list, first with its first word as the answer, then with its second
        assert documents(one) == [f"A. {one.answers[0]}", f"B. {two.answers[0]}"]
        assert task.case(sample, 1).text == task.case(sample + 1, 0).text
        seen.update([one.answers, two.answers])
    assert len(task) == 8
    with pytest.raises(InvalidInput, match="count must be even"):
        load_task("ab-order", count=3)
    rows = [{"question": "Which is larger?", "options": ["a pea", "the moon"], "answer": "the moon"}] * 2
    right = load_task(str(write_lines(tmp_path / "o.jsonl", rows)))
    assert [right.case(n, 0).answers for n in range(len(right))] == [("the moon",)] * 2
    for options, answer, said in ((["x"], None, "two different texts"), (["x", "y"], "z", "one of the options")):
        row = {"question": "q", "options": options, **({"answer": answer} if answer else {})}
        with pytest.raises(InvalidInput, match=f"bad.jsonl, line 2: .*{said}"):
            load_task(str(write_lines(tmp_path / "bad.jsonl", [rows[0], row])))


# Questions


def test_other_field_names_mean_the_same(tmp_path: Path) -> None:
    one = load_task(str(write_lines(tmp_path / "a.jsonl", questions())))
    renamed = [
        {"query": row["question"], "answer": row["answers"], "positive": [row["gold"]],
         "negative_ctxs": [each if isinstance(each, str) else {"title": each["title"], "contents": each["text"]}
                           for each in row["distractors"]]}
        for row in questions()
    ]
    two = load_task(str(write_lines(tmp_path / "b.jsonl.gz", renamed)))
    assert [two.case(n, s).text for n in range(6) for s in range(5)] == [
        one.case(n, s).text for n in range(6) for s in range(5)
    ]
    assert one.case(0, 0).text.count("Document 5: The same text twice.") == 1


def test_distractors_that_hold_an_answer_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = questions()
    rows[1]["distractors"].insert(0, "Somewhere WRITER  1w is named.")
    rows[2]["distractors"].append(rows[2]["gold"])  # the gold document again
    rows[3]["distractors"].pop()
    rows[4]["distractors"].insert(0, "The writer 4wx is somebody else.")  # no whole word of an answer
    task = load_task(str(write_lines(tmp_path / "q.jsonl", rows)), documents=5)
    found = task.record()["data"]
    assert found["distractors_with_answer_dropped"] == 2
    assert (found["records"], found["too_few_documents"], len(task)) == (6, 1, 5)
    assert "4wx" in task.case(3, 4).text
    assert load_task(str(tmp_path / "q.jsonl")).slots == 4
    with pytest.raises(InvalidInput, match="has 9 usable documents; the most is 6"):
        load_task(str(tmp_path / "q.jsonl"), documents=9)
    with pytest.raises(InvalidInput, match=r"count: 6 samples were asked for and .* holds 5"):
        load_task(str(tmp_path / "q.jsonl"), documents=5, count=6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": None}, "has no field question or query; it has answers, gold, distractors"),
        ({"question": " "}, "question must be a text that is not empty"),
        ({"question": "\ud800"}, "question must be a text"),
        ({"answers": []}, "has no answers or answer"),
        ({"answers": ["a", 3]}, "answers must be a text that is not empty, got 3"),
        ({"gold": []}, "has no gold document"),
        ({"gold": {"title": "t"}}, "gold: has no field text or contents"),
        ({"gold": "nothing of it"}, "its gold document holds none of the answers .* set check=False"),
        ({"distractors": "one"}, "distractors must be a list"),
        ({"distractors": ["one", 2]}, "distractor 2 must be a text"),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "q.jsonl"
    text = "\n".join(json.dumps(row) for row in [questions()[0], {}, questions()[1] | change]).replace("{}", "")
    path.write_text(text)
    with pytest.raises(InvalidInput, match=f"q.jsonl, line 3.*{said}"):
        load_task("questions", file=str(path))


def test_files_that_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    for raw, said in ((b"", "holds no records"), (b"\n\n", "holds no records"), (b"{\n", "line 1: is not JSON"),
                      (b"[1]\n", "line 1: must be a JSON object"), (b"\xff\n", "line 1: is not UTF-8")):
        path.write_bytes(raw)
        with pytest.raises(InvalidInput, match=said):
            load_task("questions", file=str(path))
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(b"\x1f\x8b\x08 not a gzip file")
    with pytest.raises(InvalidInput, match="is damaged"):
        load_task("questions", file=str(packed))
    with pytest.raises(MissingResource, match="cannot read"):
        load_task("questions", file=str(tmp_path / "none"))


def test_yes_and_no_need_no_check(tmp_path: Path) -> None:
    rows = [{"question": "Is it?", "answers": "yes", "gold": "It is.", "distractors": ["It was."]}]
    assert load_task(str(write_lines(tmp_path / "q.jsonl", rows)), check=False).case(0, 1).answers == ("yes",)


# Published files


def test_published_prompts_hold_the_files_documents_in_their_order(tmp_path: Path) -> None:
    pattern = write_published(tmp_path)
    task: Any = load_task(pattern)
    assert (task.slots, task.positions, len(task)) == (5, (0, 1, 2, 3, 4), 7)
    for slot in (0, 2, 4):
        path = tmp_path / f"nq-open-5_total_documents_gold_at_{slot}.jsonl.gz"
        for n, line in enumerate(gzip.decompress(path.read_bytes()).decode().splitlines()):
            record = json.loads(line)
            wanted = [f"Document {k}, {c['title']}: {c['text']}" for k, c in enumerate(record["ctxs"], 1)]
            assert documents(task.case(n, slot)) == wanted
    assert task.record()["data"]["unpaired"] == 0
    # One file gives every slot, and where there is a file it is the same prompt.
    alone = load_task(str(tmp_path / "nq-open-5_total_documents_gold_at_2.jsonl.gz"))
    assert [alone.case(n, s).text for n in range(7) for s in range(5)] == [
        task.case(n, s).text for n in range(7) for s in range(5)
    ]
    fixed: Any = load_task(pattern, reorder=False)
    assert fixed.positions == (0, 2, 4)
    with pytest.raises(InvalidInput, match=r"slot must be one of the files' \[0, 2, 4\], got 1"):
        fixed.case(0, 1)


def test_published_key_value_files(tmp_path: Path) -> None:
    task = load_task(str(write_published_pairs(tmp_path)))
    assert (task.slots, len(task)) == (5, 4)
    for n in range(4):
        own = task.case(n, n % 5)  # where the file has it
        assert documents(own) == [f'"key-{n}-{k}-a": "val-{n}-{k}-b"' for k in range(5)]
        for slot in range(5):
            assert task.case(n, slot).answers == (f"val-{n}-{n % 5}-b",)


def test_a_template_in_the_published_form(tmp_path: Path) -> None:
    wording = tmp_path / "t.prompt"
    wording.write_text("Read.\n\n{search_results}\n\nQuestion: {question}\nAnswer:\n")
    text = load_task(write_published(tmp_path), template=str(wording)).case(0, 0).text
    assert text.startswith("Read.\n\nDocument [1](Title: Gold 0) The answer to 0 is value-0-x, as is known.\nDocument ")
    assert text.endswith("\n\nQuestion: what is 0\nAnswer:")
    wording.write_text('Read.\n{formatted_kv_records}\n\nKey: "{key}"\nValue:')
    case = load_task(str(write_published_pairs(tmp_path, pairs=2)), template=str(wording)).case(0, 0)
    assert case.text == 'Read.\n{"key-0-0-a": "val-0-0-b",\n "key-0-1-a": "val-0-1-b"}\n\nKey: "key-0-0-a"\nValue:'
    assert case.lead == " "


def test_oracle_and_closed_book_files(tmp_path: Path) -> None:
    oracle = write_lines(tmp_path / "nq-open-oracle.jsonl.gz", [published_record(n, 0, 1) for n in range(3)])
    task = load_task(str(oracle))
    assert (task.slots, len(task)) == (1, 3)
    alone = task.oracle(1)
    assert alone is not None
    assert alone.text == task.case(1, 0).text
    closed = write_lines(tmp_path / "c.jsonl", [{"question": "q", "answers": ["a"]}])
    with pytest.raises(NotApplicable, match="line 1: has no ctxs, so there is no position to vary"):
        load_task("published", files=str(closed))


def test_published_files_that_disagree(tmp_path: Path) -> None:
    def write(name: str, rows: list[Any]) -> str:
        return str(write_lines(tmp_path / name, rows))

    rows = [published_record(n, 0, 3) for n in range(3)]
    first = write("a_gold_at_0.jsonl", rows)
    moved = [published_record(n, 1, 3) for n in range(3)]
    with pytest.raises(InvalidInput, match=r"its name says gold at 2, its records have it at 1 \(from 0\)"):
        load_task("published", files=write("a_gold_at_2.jsonl", moved))
    with pytest.raises(InvalidInput, match="line 2: its gold document is at slot 1, those before at 0"):
        load_task("published", files=write("b.jsonl", [rows[0], moved[1]]))
    with pytest.raises(InvalidInput, match=r"holds 2 records, .* 3; they must ask the same"):
        load_task("published", files=[first, write("c.jsonl", moved[:2])])
    with pytest.raises(InvalidInput, match="asks another question"):
        load_task("published", files=[first, write("d.jsonl", [moved[1], moved[0], moved[2]])])
    with pytest.raises(InvalidInput, match="must all have the same number of documents"):
        load_task("published", files=[first, write("e.jsonl", [published_record(n, 1, 4) for n in range(3)])])
    with pytest.raises(InvalidInput, match="at slot 0, as another file does"):
        load_task("published", files=[first, write("f.jsonl", rows)])
    none = published_record(0, 0, 3)
    del none["ctxs"][0]["isgold"]
    unmarked = write("g.jsonl", [none])
    with pytest.raises(InvalidInput, match="must mark one of its 3 ctxs with isgold, it marks 0"):
        load_task("published", files=unmarked)
    # Another order of the distractors is used as it is, and counted.
    other = json.loads(json.dumps(moved))
    other[1]["ctxs"][0], other[1]["ctxs"][2] = other[1]["ctxs"][2], other[1]["ctxs"][0]
    task = load_task("published", files=[first, write("h.jsonl", other)])
    assert task.record()["data"]["unpaired"] == 1
    assert "Document 1, Title 1" in task.case(1, 1).text
    assert task.case(1, 0).sample == task.case(1, 1).sample
    # So is a distractor that names the answer.
    named = json.loads(json.dumps(rows))
    named[0]["ctxs"][1]["text"] += " Not value-0-x."
    assert load_task("published", files=write("i.jsonl", named)).record()["data"]["distractors_with_answer"] == 1


# Answers in documents


@pytest.mark.parametrize(
    ("answer", "text", "whole", "anywhere"),
    [
        ("5", "in 15 of them", False, True),
        ("5", "in (5) of them", True, True),
        ("art", "a party", False, True),
        ("ART", "an art.", True, True),
        ("new  york", "New\nYork", True, True),
        ("北京", "在北京市", True, True),
        ("ﬁn", "fin de siècle", True, True),
        ("straße", "STRASSE 5", True, True),
        (".tg", "x.tg", True, True),
        ("a", "bcd", False, False),
        ("5", "15 and 5", True, True),
    ],
)
def test_where_an_answer_occurs(answer: str, text: str, whole: bool, anywhere: bool) -> None:
    assert occurs(answer, text) is whole
    assert occurs(answer, text, whole=False) is anywhere
