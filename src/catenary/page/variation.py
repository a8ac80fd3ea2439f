"""A variation on disk: its table as CSV and JSON, the chart of its indices, and the report of its profiles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catenary.drawing import PALETTE
from catenary.explore.variation import Variation
from catenary.figures import save_each
from catenary.page.report import write_report
from catenary.page.trend import trend
from catenary.provenance import versions
from catenary.store import make_folder, records_csv, write_text


def write_variation(variation: Variation, out: Path | str, *, config: Mapping[str, Any] | None = None) -> Path:
    """Write ``variation.json``, ``variation.csv`` and the figure into ``out``; the path of what to look at.

    ``config`` says what it was asked for, and tells it from another variation later. The path is
    ``report.html`` with the profiles where there are at most six, else the figure. The same variation gives the same
    bytes, but for the date in the PDF.
    """
    folder = Path(out)
    make_folder(folder / "figures")
    rows = variation.rows()
    axes = {axis.field: list(axis.values) for axis in variation.axes}
    data = {
        "model": variation.model, "length": variation.length, "vary": axes, "versions": versions(),
        "config": dict(config or {}), "rows": rows,
    }  # fmt: skip
    write_text(folder / "variation.csv", records_csv(rows))
    figures = save_each(trend(variation), folder / "figures" / "variation")
    write_text(folder / "variation.json", json.dumps(data, indent=1) + "\n")
    profiles = [variant.profile for variant in variation.predicted if variant.profile is not None]
    if len(profiles) > len(PALETTE):
        return figures[0]
    title = f"{variation.model}: {', '.join(axes)}"
    return write_report(profiles, folder, title=title, comparisons=[])
