"""Measure a tiny network of every causal model type, and write decoders.json and docs/decoders.md.

    python scripts/verify_measuring.py                measure all types
    python scripts/verify_measuring.py llama gemma2   measure these, keep the other rows
    python scripts/verify_measuring.py --docs         write docs/decoders.md from the rows at hand
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from catenary.configs.class_facts import causal_types  # noqa: E402
from catenary.errors import InvalidInput, MissingResource  # noqa: E402
from catenary.models.portrait import portrait  # noqa: E402
from families.decoder_table import PAGE, ROWS, page, read_rows  # noqa: E402
from families.measuring import Row, build, check  # noqa: E402


def main() -> None:
    """Measure, write the rows after every type, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    rows = read_rows() if ROWS.exists() else {}
    for model_type in () if options.docs else options.types or causal_types():
        rows[model_type] = measure(model_type, rows.get(model_type, {}).get("final_norm"))
        print(model_type, json.dumps(rows[model_type]), flush=True)
        lines = [f"{json.dumps(kind)}: {json.dumps(rows[kind])}" for kind in sorted(rows)]
        ROWS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    PAGE.write_text(page(rows), "utf-8")


def measure(model_type: str, norm: str | None) -> Row:
    """The row of one type; where no final norm is known yet, the one found is checked by itself."""
    try:
        if norm is None:
            model = build(model_type)
            norm = portrait(model.module, model.anatomy).final_norm
        found = check(model_type, norm)
    except MissingResource:
        return {"refused": "its vision part needs a package (timm) that is not installed where this page is made"}
    except InvalidInput as error:
        return {"refused": str(error)}
    print(
        f"{model_type}: dense {found.dense:.1e}, difference {found.difference:.1e}, eager {found.eager:.1e}, padded "
        f"{'refused' if found.padded is None else f'{found.padded:.1e}'}, spread {found.spread:+.2f}"
    )
    return found.row


if __name__ == "__main__":
    main()
