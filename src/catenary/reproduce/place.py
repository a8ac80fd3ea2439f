"""Place: where in a paper a claim stands, read from its words, so that a ledger follows the paper's own order."""

from __future__ import annotations

import re
from typing import Final

_FIRST: Final = re.compile(
    r"(?P<abstract>\babstract\b)"
    r"|\bsections? (?P<section>\d+(?:\.\d+)*)"
    r"|\bappendix (?P<appendix>[A-Z])(?:\.(?P<part>\d+))?"
    r"|\b(?:Theorem|Lemma|Proposition|Corollary|Eq\.) (?P<statement>\d+)\.",
)
_NOWHERE: Final = (3, (), "Tables, configs and code")

Place = tuple[int, tuple[int, ...], str]


def place_of(where: str) -> Place:
    """Rank among abstract, sections, appendices and the rest; numbers within it; the heading it stands under.

    The first place that ``where`` names decides. A theorem or equation "1.3" stands in section 1.
    """
    found = _FIRST.search(where)
    if found is None:
        return _NOWHERE
    if found["abstract"]:
        return 0, (), "Abstract"
    if found["appendix"]:
        letter = found["appendix"]
        return 2, (ord(letter), int(found["part"] or 0)), f"Appendix {letter}"
    numbers = tuple(int(part) for part in (found["section"] or found["statement"]).split("."))
    return 1, numbers, f"Section {numbers[0]}"
