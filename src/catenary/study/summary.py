"""What a finished run says on the terminal: one line of shape per curve, one of agreement per comparison."""

from __future__ import annotations

from catenary.comparison import compare
from catenary.shape import describe
from catenary.store import Run
from catenary.study.curves import comparable_pairs, single_curves


def summary(run: Run) -> str:
    """Verdicts, agreements and what was skipped, as plain text."""
    single = single_curves(run.curves)
    lines = ["shapes"]
    lines += [f"  {describe(curve).words()}" for curve in single.values()]
    pairs = list(comparable_pairs(single))
    if pairs:
        lines.append("comparisons")
        lines += [f"  {compare(single[a], single[b]).words()}" for a, b in pairs]
    lines += [f"skipped {entry['name']}: {entry['reason']}" for entry in run.result.get("skipped", [])]
    return "\n".join(lines)
