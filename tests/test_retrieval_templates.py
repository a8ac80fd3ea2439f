"""Templates: what is filled in where, what is refused with the line named, and the shipped ones."""

from __future__ import annotations

import itertools
import string
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.case import Segment
from catenary.retrieval.tasks.template import (
    CLOSED,
    HAYSTACK,
    ITEMS,
    OPTIONS,
    PAIRS,
    QUESTIONS,
    letter,
    merge,
    opens,
    parse_line,
    read_template,
)

TEXTS = st.text(alphabet=st.sampled_from("ab {}\n\\@é漢🙂"), max_size=12)
SHIPPED = {
    "questions": QUESTIONS,
    "key-value": PAIRS,
    "closed-book": CLOSED,
    "needle": HAYSTACK,
    "list-order": ITEMS,
    "list-order-unnumbered": ITEMS,
    "ab-order": OPTIONS,
}


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@given(st.lists(TEXTS, min_size=1, max_size=4), st.dictionaries(st.sampled_from(["key", "value"]), TEXTS, min_size=2))
def test_filling_replaces_placeholders_and_nothing_else(literals: list[str], values: dict[str, str]) -> None:
    names = ["key", "value"] * 2
    source, expected = escaped(literals[0]), literals[0]
    for literal, name in zip(literals[1:], names, strict=False):
        source += "{" + name + "}" + escaped(literal)
        expected += values[name] + literal
    line = parse_line(source, ("key", "value"), "here")
    assert line.fill(values) == expected
    # The same by Python's own formatting, which reads this much of the syntax alike.
    assert source.format(**values) == expected


@settings(max_examples=60)
@given(
    st.lists(st.fixed_dictionaries({"title": TEXTS, "text": TEXTS}), min_size=1, max_size=4),
    TEXTS,
    TEXTS,
    TEXTS.filter(lambda text: not text.startswith("@")),
    st.booleans(),
)
def test_slots_keep_their_spans(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[dict[str, str]], question: str, after: str, before: str, first: bool,
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.txt"
    path.write_text(f"{escaped(before)}{{documents}}{escaped(after)}{{question}}.", encoding="utf-8")
    template = read_template(path, QUESTIONS, document_format="<{number}|{letter}|{title}|{text}>",
                             untitled_format="<{number}|{text}>")
    segments = template.segments(documents, {"question": question}, query_first=first)
    lines = [
        f"<{n}|{'ABCD'[n - 1]}|{d['title']}|{d['text']}>" if d["title"] else f"<{n}|{d['text']}>"
        for n, d in enumerate(documents, 1)
    ]
    asked = f"{question}\n\n" if first else ""
    assert "".join(s.text for s in segments) == asked + before + "\n".join(lines) + after + question + "."
    assert [s.text for s in segments if s.slot is not None] == lines
    assert [s.slot for s in segments if s.slot is not None] == list(range(len(lines)))
    assert not any(a.slot is None and b.slot is None for a, b in itertools.pairwise(segments))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{documents}", "holds no {question}"),
        ("{question}", r"must hold {documents} or {search_results} once, it does 0 times"),
        ("{documents}{question}{search_results}", "once, it does 2 times"),
        ("\n{documents}{qestion}", "line 2: unknown placeholder 'qestion'. Did you mean 'question'"),
        ("{documents}\n\n{ question }", "line 3: '{ question }' is no placeholder; write {{ and }} for braces"),
        ("{documents}{question!r}", "is no placeholder"),
        ("{documents}{0}", "is no placeholder"),
        ("{documents}{}", "is no placeholder"),
        ("{documents}\n{question} {", "line 2: a single { starts or ends no placeholder; write {{ for a brace"),
        ("{documents}\n{question} }", "a single } starts or ends no placeholder; write }} for a brace"),
        ("{documents\n}{question}", "line 1: a single {"),
        ("@prompts\n{documents}{question}", "line 1: unknown setting '@prompts'"),
        ("@lead x\n{documents}{question}", "line 2: unknown setting"),
        ("@lead x", "its head has no end; write a line @prompt"),
        ("@lead a\n@lead b\n@prompt\n{documents}{question}", "line 2: @lead is there twice"),
        ("@between \\x\n@prompt\n{documents}{question}", "line 1: '\\\\x' is no escape"),
        ("@between \\\n@prompt\n{documents}{question}", "is no escape"),
        ("@document {title}\n@prompt\n{documents}{question}", "its document line: holds no {text}"),
        ("@document {texts}\n@prompt\n{documents}{question}", "its document line, line 1: unknown placeholder 'texts'"),
        ("@untitled {txt}\n@prompt\n{documents}{question}", "documents without a title, line 1: unknown placeholder"),
        ("@ask-first {key}\n@prompt\n{documents}{question}", "its @ask-first, line 1: unknown placeholder 'key'"),
        ("@lead x\n@prompt\n{documents}\n{qestion}", "line 4: unknown placeholder 'qestion'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.txt"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"own.txt") as caught:
        read_template(path, QUESTIONS)
    assert said in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=r"cannot read .*none.txt' \(No such file"):
        read_template(tmp_path / "none.txt", QUESTIONS)
    with pytest.raises(MissingResource, match="cannot read"):
        read_template(tmp_path, QUESTIONS)
    (tmp_path / "latin.txt").write_bytes("é{documents}{question}".encode("latin-1"))
    with pytest.raises(InvalidInput, match="template must be UTF-8 text"):
        read_template(tmp_path / "latin.txt", QUESTIONS)
    with pytest.raises(InvalidInput, match=r"unknown template 'built-in:question'. Did you mean 'built-in:questions'"):
        read_template("built-in:question", QUESTIONS)


def test_the_head_of_a_template(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(
        b"@document ({number}) {text}\\n\r\n@opening [\r\n@between \\s|\\t\\\\\r\n@closing ]\r\n"
        b"@ask-first {question}?\r\n"
        b"@lead \\n\r\n@prompt\r\n{documents}\r\n{question}:\r\n\r\n"
    )
    template = read_template(path, QUESTIONS)
    segments = template.segments([{"title": "t", "text": "a"}, {"title": "", "text": "b"}], {"question": "Q"})
    assert segments == (
        Segment("["), Segment("(1) a\n", 0), Segment(" |\t\\"), Segment("(2) b\n", 1), Segment("]\nQ:")
    )
    assert template.lead_after("Q:") == "\n"
    asked = template.segments([{"title": "t", "text": "a"}], {"question": "Q"}, query_first=True)
    assert asked[0] == Segment("Q?[")


def test_documents_without_a_title(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("{documents}{question}")
    untitled = [{"title": "", "text": "x"}]

    def first(**formats: str) -> str:
        return read_template(path, QUESTIONS, **formats).segments(untitled, {"question": ""})[0].text

    assert first() == "Document 1: x"
    assert first(document_format="[{title}] {text}") == "Document 1: x"
    assert first(document_format="* {text}") == "* x"
    assert first(document_format="[{title}] {text}", untitled_format="- {text}") == "- x"


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_templates_are_read(name: str) -> None:
    template = read_template(f"built-in:{name}", SHIPPED[name])
    query = dict.fromkeys(SHIPPED[name].query, "Q")
    documents = [{"title": "T", "text": "x", "key": "x", "value": "v", "item": "x", "option": "x"}]
    segments = template.segments(documents if template.holder else [], query)
    text = "".join(segment.text for segment in segments)
    assert text.count("Q") >= 1
    assert not text.endswith("\n")
    assert (template.lead_after(text) == "") == (name == "key-value")


def test_every_shipped_template_is_in_the_test() -> None:
    folder = resources.files("catenary.retrieval.tasks") / "templates"
    assert {entry.name for entry in folder.iterdir()} == {f"{name}.txt" for name in SHIPPED}


@pytest.mark.parametrize(
    ("prompt", "directly"),
    [
        ("Answer:", False), ("Answer: ", True), ("Answer:\n", True), ('Value: "', True), ('Key "x"', False),
        ("('", True), ("it's", False), ("", True), ('"', True), ("(", True), ("“", True), ("”", False), ("{", True),
        (':"', True), ("答:", False),
    ],
)
def test_whether_an_answer_follows_directly(prompt: str, directly: bool) -> None:
    assert opens(prompt) is directly


def test_letters_count_past_z() -> None:
    names = [a + b for a in ["", *string.ascii_uppercase] for b in string.ascii_uppercase]
    assert [letter(n) for n in range(702)] == names[:702]
    assert letter(702) == "AAA"


@given(st.lists(st.tuples(TEXTS, st.sampled_from([None, 0, 1])), max_size=8))
def test_merging_keeps_the_text_and_the_slots(parts: list[tuple[str, int | None]]) -> None:
    segments = [Segment(*part) for part in parts]
    merged = merge(segments)
    assert "".join(s.text for s in merged) == "".join(s.text for s in segments)
    assert [s for s in merged if s.slot is not None] == [s for s in segments if s.slot is not None and s.text]
    assert all(s.text for s in merged)
