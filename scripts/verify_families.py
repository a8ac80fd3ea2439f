"""Measure every described model type against its law, and write standing.json and docs/families.md.

    python scripts/verify_families.py               measure all types
    python scripts/verify_families.py llama gemma2  measure these, keep the others' figures
    python scripts/verify_families.py --docs        write docs/families.md from the figures at hand
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from families.contract import verify  # noqa: E402
from families.table import page  # noqa: E402
from families.tiny import TINY  # noqa: E402

FIGURES = ROOT / "src" / "catenary" / "configs" / "standing.json"
PAGE = ROOT / "docs" / "families.md"
NETWORKS = 32
"""Of each type, unless --networks says otherwise."""


def main() -> None:
    """Measure, write the figures after every type, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--networks", type=int, default=NETWORKS)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    figures: dict[str, Any] = json.loads(FIGURES.read_text("utf-8"))["types"] if FIGURES.exists() else {}
    for model_type in () if options.docs else options.types or TINY:
        figures[model_type] = measure(model_type, options.networks)
        print(model_type, json.dumps(figures[model_type]), flush=True)
        save(figures)
    PAGE.write_text(page(), "utf-8")


def measure(model_type: str, networks: int) -> dict[str, Any]:
    """The figures of one type, rounded."""
    case = TINY[model_type]
    found = verify(model_type, case, networks=networks)
    row: dict[str, Any] = {"median": found.median, "largest": found.largest, "floor": found.floor}
    if case.feature:
        row["plain"] = found.plain
    return {"feature": case.feature, "networks": networks, **{name: round(value, 4) for name, value in row.items()}}


def save(figures: dict[str, Any]) -> None:
    """Write one line per described type."""
    lines = [f"{json.dumps(kind)}: {json.dumps(figures[kind])}" for kind in sorted(figures) if kind in TINY]
    FIGURES.write_text('{"types": {\n' + ",\n".join(lines) + "\n}}\n", "utf-8")


if __name__ == "__main__":
    main()
