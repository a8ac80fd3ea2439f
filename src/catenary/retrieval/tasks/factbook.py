"""The factbook: country profiles as facts (country, field, value), with the values that make short answers."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, MissingResource

FOLDER = "factbook"
NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)( (?:million|billion|trillion))?(?=%|$| \(| [a-z])")
# Words that end the value, or go on with one bracket and nothing after it, or with a semicolon.
WORDS = re.compile(r"([^(;]+)(?:$| \([^)]*\)$|;)")
# What the profiles write for "none" in many ways: no answer to a question.
EMPTY = ("none", "na", "n/a", "note", "unknown", "see", "no ", "not ", "as of")


@dataclass(frozen=True)
class Fact:
    """One value of one country's profile: ``field`` such as ``infant mortality rate (male)``."""

    country: str
    field: str
    value: str

    def number(self, longest: int) -> tuple[str, ...]:
        """The number the value begins with, of 2 to ``longest`` characters, and the ways to say more; () for none.

        A value that lists several (``;``) has no one number.
        The number comes first: it is what a question asks for. After it come the number with its million or billion,
        the value without its bracket, and the whole value, which answer the question as well.
        """
        match = NUMBER.match(self.value)
        if not match or not 2 <= len(match.group(1)) <= longest or ";" in self.value:
            return ()
        return self._ways(match.group(1), match.group())

    def words(self, longest: int) -> tuple[str, ...]:
        """The value up to a bracket or semicolon, if that is 3 to ``longest`` characters without a digit; else ().

        A value that repeats the country's name answers nothing.
        """
        match = WORDS.match(self.value)
        short = match.group(1).strip(' "') if match else ""
        if not 3 <= len(short) <= longest or not short[0].isalnum() or re.search(r"\d", short):
            return ()
        if short.lower().startswith(EMPTY) or self.country.lower() in short.lower():
            return ()
        return self._ways(short)

    def _ways(self, *texts: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*texts, self.value.split(" (")[0].strip(), self.value)))


@dataclass(frozen=True)
class Factbook:
    """Facts by field and country, with how many there are and what they were read from."""

    fields: Mapping[str, Mapping[str, Fact]]
    facts: int
    profiles: int
    unnamed: int
    sha256: str


def find_factbook(folder: str | Path | None) -> Path:
    """The factbook's folder: the one given, or where the demo fetch puts it.

    Raises ``MissingResource`` that says how to fetch it and which tasks need no data.
    """
    demo = Path(os.environ.get("CATENARY_DEMO") or ".cache/demo")
    path = Path(folder) if folder is not None else demo / FOLDER
    nested = path / FOLDER
    if nested.is_dir():
        path = nested
    if not path.is_dir():
        raise MissingResource(
            f"facts: no factbook in {str(path)!a}; fetch it (2 MB, needs npm) with: "
            f"python scripts/fetch_demo.py --facts {demo}; without it, key-value and key-value-digits need no data"
        )
    return path


def read_factbook(folder: Path) -> Factbook:
    """Read every ``REGION/CODE.json`` below the folder.

    A profile without a name (oceans, the world) is counted in ``unnamed`` and left out of ``fields``. A value that
    lists several years (``++``) keeps the first, the newest. Raises ``InvalidInput`` for a file that is no profile
    and ``MissingResource`` if there is none at all.
    """
    fields: dict[str, dict[str, Fact]] = {}
    digest = hashlib.sha256()
    facts = profiles = unnamed = 0
    for path in sorted(folder.glob("*/??.json")):
        raw = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name}\0".encode() + raw)
        try:
            profile = json.loads(raw)
        except ValueError as problem:
            raise InvalidInput(f"facts: {str(path)!a} is not JSON ({problem}); fetch the factbook again") from problem
        if not isinstance(profile, dict):
            raise InvalidInput(f"facts: {str(path)!a} is no country profile; fetch the factbook again")
        profiles += 1
        values = list(_values(profile, ()))
        facts += len(values)
        country = _name(dict(values))
        unnamed += not country
        for trail, text in values if country else ():
            value = " ".join(text.split("++")[0].split()).rstrip(".")
            if len(trail) in (2, 3) and value and trail[1] != "Country name":
                field = _uncapitalised(trail[1] if len(trail) == 2 else f"{trail[1]} ({trail[2]})")
                fields.setdefault(field, {}).setdefault(country, Fact(country, field, value))
    if not profiles:
        raise MissingResource(f"facts: {str(folder)!a} holds no country profiles (REGION/CODE.json)")
    return Factbook(fields, facts, profiles, unnamed, digest.hexdigest())


def _values(node: Mapping[str, Any], trail: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a profile with the names that lead to it: section, field, and the field's part if it has parts."""
    for name, child in node.items():
        if isinstance(child, dict):
            yield from _values(child, (*trail, name))
        elif name == "text" and isinstance(child, str):
            yield trail, child


def _name(values: Mapping[tuple[str, ...], str]) -> str:
    """The country's short name without brackets, its long name where it has none, "" without either."""
    for kind in ("short", "long"):
        name = values.get(("Government", "Country name", f"conventional {kind} form"), "").strip()
        name = name.split(" (sometimes")[0]
        if name and name.lower() != "none" and ";" not in name:
            return name
    return ""


def _uncapitalised(field: str) -> str:
    """``Birth rate`` as ``birth rate``, while ``GDP`` and ``HIV/AIDS`` stay as they are."""
    return field if field[1:2].isupper() else field[:1].lower() + field[1:]
