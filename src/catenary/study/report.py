"""The page of a stored run: its curves, the comparisons worth making, and what was skipped and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catenary.store import Run
from catenary.study.curves import comparable_pairs, single_curves

_SHOWN = ("config", "model", "versions", "parts", "architecture")
"""Entries of result.json that the page's provenance shows; the rest are curves, tables, or long lists."""


def report_run(run: Run, *, title: str | None = None, out: Path | None = None) -> Path:
    """Write ``report.html`` and ``figures/`` into the run's directory (or ``out``) and return the page's path."""
    from catenary.comparison import compare
    from catenary.page.report import write_report

    single = single_curves(run.curves)
    pairs = comparable_pairs(single)
    provenance: dict[str, Any] = {key: run.result[key] for key in _SHOWN if key in run.result}
    return write_report(
        list(single.values()),
        out or run.folder,
        title=title,
        notes=[_note(entry) for entry in run.result.get("skipped", [])],
        comparisons=[compare(single[a], single[b]) for a, b in pairs],
        provenance=provenance,
    )


def _note(skipped: dict[str, str]) -> str:
    return f"Not measured: {skipped['name']}. {skipped['reason']}."
