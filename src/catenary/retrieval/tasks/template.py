"""Templates: a prompt as plain text with placeholders, filled into segments that keep the slot of each document."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from catenary.errors import InvalidInput, MissingResource, invalid, unknown
from catenary.retrieval.case import Segment
from catenary.text.records import decode

OPENINGS = ("(", "[", "{", "<", "“", "‘", "«", "„")
TOKEN = re.compile(r"\{\{|\}\}|\{[^{}\n]*\}|[{}]")
NAME = re.compile(r"[a-z_]+")


@dataclass(frozen=True)
class Line:
    """A text with placeholders: ``parts[0]`` is literal, ``parts[1]`` a placeholder's name, and so on in turn."""

    parts: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The placeholders, in order, with repeats."""
        return self.parts[1::2]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with every placeholder replaced; what is put in is not read for placeholders again."""
        return "".join(values[part] if at % 2 else part for at, part in enumerate(self.parts))


def parse_line(text: str, known: Collection[str], where: str) -> Line:
    """Read ``{name}`` as a placeholder and ``{{``, ``}}`` as braces.

    Raises ``InvalidInput``, naming ``where`` and the line, for a lone brace or a placeholder that is not known.
    """
    parts, literal, at = [], "", 0
    for match in TOKEN.finditer(text):
        literal += text[at : match.start()]
        at = match.end()
        token = match.group()
        if token in ("{{", "}}"):
            literal += token[0]
            continue
        line = f"{where}, line {text.count(chr(10), 0, match.start()) + 1}"
        if token in ("{", "}"):
            raise InvalidInput(f"{line}: a single {token} starts or ends no placeholder; write {token * 2} for a brace")
        name = token[1:-1]
        if not NAME.fullmatch(name):
            raise InvalidInput(f"{line}: {token!a} is no placeholder; write {{{{ and }}}} for braces")
        if name not in known:
            raise InvalidInput(f"{line}: {unknown('placeholder', name, known)}")
        parts += [literal, name]
        literal = ""
    return Line((*parts, literal + text[at:]))


@dataclass(frozen=True)
class Form:
    """How a list of documents is written where a placeholder such as ``{documents}`` stands."""

    document: str
    untitled: str = ""
    opening: str = ""
    between: str = "\n"
    closing: str = ""


@dataclass(frozen=True)
class Slots:
    """What a kind of task offers a template.

    Attributes:
        documents: placeholder of the list of documents (its first name is our own) to the form it is written in.
        query: placeholders of the question; a template must hold at least one of them.
        fields: what one document holds, the text itself last; ``number``, its place counted from 1, and ``letter``,
            its place as A, B, .. Z, AA, are always there.
    """

    documents: Mapping[str, Form]
    query: tuple[str, ...]
    fields: tuple[str, ...]


QUESTIONS = Slots(
    {
        "documents": Form("Document {number}, {title}: {text}", "Document {number}: {text}"),
        "search_results": Form("Document [{number}](Title: {title}) {text}", "Document [{number}] {text}"),
    },
    ("question",),
    ("title", "text"),
)
PAIRS = Slots(
    {
        "pairs": Form('"{key}": "{value}"', between=",\n "),
        "formatted_kv_records": Form('"{key}": "{value}"', opening="{", between=",\n ", closing="}"),
    },
    ("key",),
    ("key", "value"),
)
HAYSTACK = Slots(
    {name: Form("{text}") for name in ("haystack", "documents", "context")}, ("question",), ("text",)
)
ITEMS = Slots({name: Form("{number}. {item}") for name in ("items", "documents")}, ("question",), ("item",))
OPTIONS = Slots({name: Form("{letter}. {option}") for name in ("options", "documents")}, ("question",), ("option",))
CLOSED = Slots({}, ("question",), ())
"""A prompt with a question alone."""


@dataclass(frozen=True)
class Template:
    """A prompt's wording.

    Attributes:
        name: file name, or ``built-in:NAME``.
        text: the file as read, for the record.
        prompt: the prompt with its placeholders.
        holder: the placeholder that the documents go to, "" in a closed-book template.
        document, untitled: one document, and one without a title.
        opening, between, closing: text before, between and after the documents, none of it in a slot.
        ask_first: what ``query_first`` puts before the prompt.
        lead: text between prompt and answer; None for a space unless the prompt ends with white space or an opening
            quote or bracket.
    """

    name: str
    text: str
    prompt: Line
    holder: str
    document: Line
    untitled: Line
    opening: str
    between: str
    closing: str
    ask_first: Line
    lead: str | None

    def segments(
        self, documents: Sequence[Mapping[str, str]], query: Mapping[str, str], *, query_first: bool = False
    ) -> tuple[Segment, ...]:
        """The prompt; document n, counted from 0, is the segment of slot n."""
        return self.around(self._list(documents), query, query_first=query_first)

    def around(
        self, inner: Sequence[Segment], query: Mapping[str, str], *, query_first: bool = False
    ) -> tuple[Segment, ...]:
        """The prompt with ``inner`` in the place of its documents."""
        texts: list[Segment] = [Segment(self.ask_first.fill(query))] if query_first else []
        for at, part in enumerate(self.prompt.parts):
            if at % 2 and part == self.holder:
                texts += inner
            else:
                texts.append(Segment(query[part] if at % 2 else part))
        return merge(texts)

    def lead_after(self, prompt: str) -> str:
        """The text between a prompt and its answer."""
        if self.lead is not None:
            return self.lead
        return "" if opens(prompt) else " "

    def _list(self, documents: Sequence[Mapping[str, str]]) -> list[Segment]:
        texts = [Segment(self.opening)]
        for slot, document in enumerate(documents):
            line = self.document if document.get("title", "-") else self.untitled
            texts += [Segment(self.between)] if slot else []
            texts.append(Segment(line.fill({**document, "number": str(slot + 1), "letter": letter(slot)}), slot))
        return [*texts, Segment(self.closing)]


def letter(slot: int) -> str:
    """A, B, .. Z, AA, AB, ... for 0, 1, ..."""
    name = ""
    slot += 1
    while slot:
        slot, digit = divmod(slot - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def merge(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """The same text with neighbours that are in no slot joined and empty ones dropped."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and segment.slot is None and merged[-1].slot is None:
            merged[-1] = Segment(merged[-1].text + segment.text)
        elif segment.text:
            merged.append(segment)
    return tuple(merged)


def opens(prompt: str) -> bool:
    """Whether an answer follows the prompt directly: it ends with white space or an opening quote or bracket."""
    last, before = prompt[-1:], prompt[-2:-1]
    if last in ('"', "'", "`"):
        return not before or before.isspace() or before in (*OPENINGS, ":", "=")
    return not last or last.isspace() or last in OPENINGS


def read_template(
    source: str | Path, slots: Slots, *, document_format: str | None = None, untitled_format: str | None = None
) -> Template:
    """Read a template: a file, or one of ours by its name.

    A template is plain UTF-8 text. ``{name}`` is a placeholder, ``{{`` and ``}}`` are braces. Line ends at the end of
    the file are dropped. A file whose first line begins with ``@`` has a head, one setting a line, that ends with the
    line ``@prompt``: ``@document``, ``@untitled`` (one document), ``@opening``, ``@between``, ``@closing`` (text
    around the documents), ``@ask-first`` (what asking before the documents says), ``@lead`` (text between prompt and
    answer); ``\\n``, ``\\t``, ``\\s`` (a space) and ``\\\\`` are read in them.

    Raises ``MissingResource`` if the file is not there, ``InvalidInput`` for anything in it that cannot be used, with
    the file and line.
    """
    name, raw = _load(source)
    head, body, above = _split(raw, name)
    where = f"template {name}"
    names = {*slots.documents, *slots.query}
    prompt = parse_line("\n" * above + body, names, where)
    prompt = replace(prompt, parts=(prompt.parts[0][above:], *prompt.parts[1:]))
    holders = [part for part in prompt.names if part in slots.documents]
    if slots.documents and len(holders) != 1:
        wanted = " or ".join(f"{{{name}}}" for name in slots.documents)
        raise InvalidInput(f"{where}: must hold {wanted} once, it does {len(holders)} times")
    if not set(prompt.names) & set(slots.query):
        raise InvalidInput(f"{where}: holds no {' or '.join(f'{{{name}}}' for name in slots.query)}")
    form = slots.documents[holders[0]] if holders else Form("")
    fields = {*slots.fields, "number", "letter"}
    document = document_format if document_format is not None else head.get("document", form.document)
    bare = form.untitled if form.untitled and "{title}" in document else document
    untitled = untitled_format if untitled_format is not None else head.get("untitled", bare)
    first = head.get("ask-first", "".join(f"{{{query}}}" for query in slots.query[:1]) + "\n\n")
    line = parse_line(document, fields, f"{where}, its document line")
    if slots.fields and not set(line.names) & {slots.fields[-1]}:
        raise InvalidInput(f"{where}, its document line: holds no {{{slots.fields[-1]}}}")
    return Template(
        name,
        raw,
        prompt,
        holders[0] if holders else "",
        line,
        parse_line(untitled, fields, f"{where}, its line for documents without a title"),
        head.get("opening", form.opening),
        head.get("between", form.between),
        head.get("closing", form.closing),
        parse_line(first, slots.query, f"{where}, its @ask-first"),
        head.get("lead"),
    )


BUILT_IN = "built-in:"
SETTINGS = ("document", "untitled", "opening", "between", "closing", "ask-first", "lead")


def _load(source: str | Path) -> tuple[str, str]:
    """Name and text of a template."""
    if isinstance(source, str) and source.startswith(BUILT_IN):
        folder = resources.files("catenary.retrieval.tasks") / "templates"
        known = sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))
        if source.removeprefix(BUILT_IN) not in known:
            raise unknown("template", source, [BUILT_IN + name for name in known])
        raw = (folder / f"{source.removeprefix(BUILT_IN)}.txt").read_bytes()
    else:
        try:
            raw = Path(source).read_bytes()
        except OSError as problem:
            reason = problem.strerror or problem
            raise MissingResource(f"template: cannot read {str(source)!a} ({reason})") from problem
    text = decode(raw)
    if text is None:
        raise invalid("template", "must be UTF-8 text", str(source), "save the file as UTF-8")
    return str(source), text.replace("\r\n", "\n").rstrip("\n")


def _split(text: str, name: str) -> tuple[dict[str, str], str, int]:
    """The head's settings, the prompt, and how many lines stand above it."""
    if not text.startswith("@"):
        return {}, text, 0
    head: dict[str, str] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        key, _, value = line.removeprefix("@").partition(" ")
        if line == "@prompt":
            return head, "\n".join(lines[number + 1 :]), number + 1
        if not line.startswith("@") or key not in SETTINGS:
            raise InvalidInput(f"template {name}, line {number + 1}: {unknown('setting', line[:40], SETTINGS)}")
        if key in head:
            raise InvalidInput(f"template {name}, line {number + 1}: @{key} is there twice")
        head[key] = _unescape(value, f"template {name}, line {number + 1}")
    raise InvalidInput(f"template {name}: its head has no end; write a line @prompt before the prompt")


def _unescape(value: str, where: str) -> str:
    """The text with its backslash escapes read."""
    escapes = {"n": "\n", "t": "\t", "s": " ", "\\": "\\"}

    def read(match: re.Match[str]) -> str:
        if match.group(1) not in escapes:
            raise InvalidInput(f"{where}: {match.group()!a} is no escape; known: \\n \\t \\s \\\\")
        return escapes[match.group(1)]

    return re.sub(r"\\(.?)", read, value)
