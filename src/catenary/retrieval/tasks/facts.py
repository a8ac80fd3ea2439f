"""Facts: questions about countries, each asked of excerpts that all carry the same fields (hard distractors)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from catenary.errors import InvalidInput, invalid
from catenary.retrieval.tasks.factbook import Fact, Factbook, find_factbook, read_factbook
from catenary.retrieval.tasks.placed import Item, Placed, occurs
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.template import CLOSED, QUESTIONS, read_template

# A value as it stands in a document; with two fields a document is then about 45 tokens.
WIDEST = 60
# A draw fails where an answer is found in too many other countries' excerpts; most do not.
TRIES = 2000


def facts(
    *,
    documents: int = 10,
    fields: int = 2,
    answers: str = "number",
    longest: int = 0,
    count: int = 60,
    seed: int = 0,
    folder: str | None = None,
    template: str = "built-in:questions",
    document_format: str | None = None,
    query_first: bool = False,
    closed_template: str = "built-in:closed-book",
) -> Placed:
    """``count`` questions "What is the FIELD of COUNTRY?", each with ``documents`` excerpts of as many countries.

    All excerpts of a sample carry the same ``fields`` fields, so only the country tells them apart. ``answers`` is
    ``number`` (the number a value begins with, 2 to 8 characters) or ``words`` (a value without digits, 3 to 24
    characters); ``longest`` is another limit. No other excerpt of a sample contains the answer, not even inside
    another number or word, and none is of a country whose name contains the one asked about. No two samples ask for
    the same field of the same country.

    Raises ``MissingResource`` without the factbook, ``InvalidInput`` for options that it cannot serve.
    """
    if answers not in ("number", "words"):
        raise invalid("answers", "must be 'number' or 'words'", answers)
    at_least("documents", documents, 1), at_least("fields", fields, 1), at_least("count", count, 1)
    at_least("seed", seed, 0), at_least("longest", longest, 0)
    book = read_factbook(find_factbook(folder))
    pool = _Pool(book, documents, fields, answers, longest or {"number": 8, "words": 24}[answers])
    asked: set[tuple[str, str]] = set()
    items = [pool.draw(sample, np.random.default_rng([seed, sample]), asked) for sample in range(count)]
    settings = {"documents": documents, "fields": fields, "answers": answers, "longest": longest, "count": count}
    settings |= {"seed": seed, "folder": folder, "template": template, "document_format": document_format}
    settings |= {"query_first": query_first, "closed_template": closed_template}
    found = {"facts": book.facts, "profiles": book.profiles, "unnamed": book.unnamed, "sha256": book.sha256}
    return Placed(
        "facts",
        items,
        read_template(template, QUESTIONS, document_format=document_format),
        read_template(closed_template, CLOSED),
        settings,
        query_first,
        found,
    )


class _Pool:
    """The fields that enough countries carry in short form, and samples drawn from them."""

    def __init__(self, book: Factbook, documents: int, fields: int, answers: str, longest: int) -> None:
        self.documents, self.fields = documents, fields
        self.answers: dict[str, dict[str, tuple[str, ...]]] = {}
        self.short: dict[str, Mapping[str, Fact]] = {}
        for field, by_country in sorted(book.fields.items()):
            short = {country: fact for country, fact in by_country.items() if len(fact.value) <= WIDEST}
            ways = {country: getattr(fact, answers)(longest) for country, fact in short.items()}
            ways = {country: texts for country, texts in ways.items() if texts}
            different = len({texts[0] for texts in ways.values()})
            # Three times as many as a sample shows: a draw then has room to leave out those with the same answer. A
            # field whose countries mostly share a few values (a sex ratio of 1.05) can be guessed without reading.
            if different >= max(3 * documents, len(by_country) / 3):
                self.short[field], self.answers[field] = short, ways
        if len(self.short) < fields:
            raise invalid("documents", f"and fields leave {len(self.short)} fields to draw from", (documents, fields))

    def draw(self, sample: int, generator: np.random.Generator, asked: set[tuple[str, str]]) -> Item:
        """One sample; adds what it asks to ``asked``."""
        names = sorted(self.short)
        for _ in range(TRIES):
            chosen = [names[at] for at in generator.choice(len(names), self.fields, replace=False)]
            field = chosen[generator.integers(self.fields)]
            countries = sorted(set.intersection(*(set(self.short[name]) for name in chosen)))
            order = [countries[at] for at in generator.permutation(len(countries))]
            able = [country for country in order if country in self.answers[field]]
            if not able or (able[0], field) in asked:
                continue
            gold, answers = able[0], self.answers[field][able[0]]
            question = f"What is the {field} of {gold}?"
            if occurs(answers[0], question, whole=False):
                continue
            others = [self._excerpt(country, chosen) for country in able[1:]]
            others = [entry for entry in others if not _gives_away(entry, gold, answers)][: self.documents - 1]
            if len(others) == self.documents - 1:
                asked.add((gold, field))
                gold_entry = self._excerpt(gold, chosen)
                return Item(f"facts-{sample}", {"question": question}, question, answers, gold_entry, tuple(others))
        raise InvalidInput(
            f"count: no further question was found after {sample}; ask for fewer samples, documents or fields"
        )

    def _excerpt(self, country: str, chosen: list[str]) -> dict[str, str]:
        facts = [self.short[field][country] for field in chosen]
        text = " ".join(f"{fact.field[:1].upper()}{fact.field[1:]}: {fact.value}." for fact in facts)
        return {"title": country, "text": text}


def _gives_away(entry: Mapping[str, str], country: str, answers: tuple[str, ...]) -> bool:
    """Whether a distractor holds an answer, or a name that the question's name is part of."""
    text = f"{entry['title']}\n{entry['text']}"
    return occurs(country, text, whole=False) or any(occurs(answer, text, whole=False) for answer in answers)


TASKS.register(
    "facts",
    Kind(
        "Excerpts of country profiles with the same fields: what is this field of this country?",
        facts,
        {
            "documents": "how many excerpts a prompt holds",
            "fields": "how many fields each excerpt carries",
            "answers": "number, or words for values without digits",
            "longest": "longest answer in characters; 0 for 8 (number) or 24 (words)",
            "folder": "the factbook's folder; by default where `fetch_demo.py --facts` puts it",
            **common("count", "seed", "template", "document_format", "query_first", "closed_template"),
        },
        data="folder",
    ),
)
