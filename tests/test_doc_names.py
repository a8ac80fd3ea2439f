"""Names in backticks that look like ours, in every page of the documentation and in the README, exist."""

from __future__ import annotations

import ast
import json
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "catenary"
PAGES = sorted([*(ROOT / "docs").glob("**/*.md"), ROOT / "README.md"])

QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
FILE = re.compile(r"[\w./-]+\.(?:py|md|json|toml|txt)")
ELSEWHERE = {"config.json", "result.json", "run.json", "variation.json", "sensitivities.json", "atlas.json"}
"""Files that users have or commands write."""


@cache
def words() -> frozenset[str]:
    """Every identifier and every one-word string of the package, the tests and the scripts, every config field, and the
    names of the experiments."""
    found = {path.stem for path in (ROOT / "experiments").rglob("*.toml")}
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "scripts").glob("*.py")):
        if path == Path(__file__):
            continue
        found.add(path.stem)
        found.add(path.parent.name)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for field in ("name", "id", "attr", "arg"):
                value = getattr(node, field, None)
                if isinstance(value, str):
                    found.add(value)
            if isinstance(node, ast.alias):
                found.update(node.name.split("."))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                found.update(node.value.split("."))
    for kind, facts in json.loads((SOURCE / "configs" / "class_defaults.json").read_text("utf-8"))["types"].items():
        found.update((kind, *facts.get("defaults", {}), *facts.get("names", {})))
    return frozenset(found)


def ours(quoted: str) -> str | None:
    """The dotted name in some quoted text if it looks like one of code: called, dotted, or in snake case."""
    name = NAME.match(quoted)
    if name is None:
        return None
    rest = quoted[name.end() :]
    if rest and not (rest.startswith("(") and rest.endswith(")")):
        return None
    found = name.group()
    return found if rest or "_" in found.strip("_") or found.startswith("catenary.") else None


def exists(name: str) -> bool:
    """Whether a name can be looked up in the package, or, where it is not spelled from its root, stands in the code."""
    root, *rest = name.split(".")
    if root not in ("catenary", "ct"):
        return {root, *rest} <= words() | {"np", "torch"}
    try:
        pkgutil.resolve_name(".".join(["catenary", *rest]))
    except (ImportError, AttributeError):
        return False
    return True


def missing(text: str) -> list[str]:
    """Quoted names of code that are nowhere in the code, and quoted paths that are no files."""
    found = []
    for quoted in QUOTED.findall(text):
        if FILE.fullmatch(quoted):
            places = (ROOT / quoted, SOURCE / quoted, ROOT / "docs" / quoted)
            if "/" in quoted and not any(place.exists() for place in places) and quoted not in ELSEWHERE:
                found.append(quoted)
            continue
        name = ours(quoted)
        if name is not None and not exists(name):
            found.append(quoted)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_names_exist(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []


def test_what_does_not_exist_is_found() -> None:
    text = "`predict`, `measure_jacobean`, `read_config(model)`, `catenary.nothing`, `scripts/none.py`, `src/x/y.json`"
    assert missing(text) == ["measure_jacobean", "catenary.nothing", "scripts/none.py", "src/x/y.json"]
