"""Ledger: every claim with what was run, our number, the verdict, and the figure, as rows and as a Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from catenary.reading import Reading, number
from catenary.reproduce.claim import DIFFERS, REPLICATES, UNDECIDED, UNDER_DEFINITION, UNTESTABLE, Claim
from catenary.reproduce.experiment import PAPERS, Experiment
from catenary.reproduce.place import place_of
from catenary.reproduce.result import Result, read_result, result_file

COLUMNS = ("where", "claim", "what was run", "value", "asked", "verdict", "figure")
MAIN_COLUMNS = ("claim", "value", "asked", "verdict")
VERDICTS = (REPLICATES, UNDER_DEFINITION, DIFFERS, UNDECIDED, UNTESTABLE)


@dataclass(frozen=True)
class Row:
    """One claim and what became of it; ``result`` is None where it is untestable or was not run yet."""

    claim: Claim
    experiment: Experiment
    result: Result | None

    @property
    def reading(self) -> Reading | None:
        """The number that decides, None where there is none."""
        return None if self.result is None else self.result.readings.get(self.claim.reading)

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``; "not run" where a testable claim has no result."""
        if self.claim.reading and self.result is None:
            return "not run"
        return self.claim.verdict(self.reading)


def rows_of(experiments: Mapping[str, Experiment], folder: Path) -> list[Row]:
    """A row for every claim, in the paper's order, with the results stored under ``folder``."""
    rows = []
    for experiment in experiments.values():
        file = result_file(folder, experiment)
        result = read_result(file) if file.is_file() else None
        rows += [Row(claim, experiment, result) for claim in experiment.claims]
    return sorted(rows, key=lambda row: place_of(row.claim.where)[:2])


def gaps(rows: list[Row]) -> list[str]:
    """What must not be: a claim without a run, a number that is missing, a "differs" without its reason."""
    said = []
    for row in rows:
        if row.verdict == "not run":
            said.append(f"{row.claim.id}: no result is stored for experiment {row.experiment.name}")
        elif row.claim.reading and row.reading is None:
            said.append(f"{row.claim.id}: experiment {row.experiment.name} gives no reading {row.claim.reading!r}")
        elif row.verdict in (DIFFERS, UNDECIDED) and not row.claim.why:
            said.append(f"{row.claim.id}: {row.verdict}, and why is not said")
    return said


HEAD = """# The ledger: three papers, claim by claim

Generated from the stored results by `scripts/generate_docs.py`; nothing here is typed by hand but the claims
themselves (`experiments/PAPER/*.toml`). A number in brackets is a 95 % interval; a floor is how far rounding or the
grid can move an exact number. A claim replicates where the whole interval lies in what is asked, differs where all of
it lies outside, and is undecided otherwise; where the paper gives no number, what is asked is ours, and the row says
how the claim was read. Each row is rerun by `catenary reproduce PAPER --claim ID`, all of them by `catenary reproduce`
(`make reproduce` also holds them against this page).
"""


def page(rows_by_paper: Mapping[str, list[Row]], figures: str = "ledger") -> str:
    """The ledger as Markdown: each paper's counts, its main claims, and a table per section of the paper.

    ``figures`` is the folder of the figures beside the page.
    """
    parts = [HEAD]
    for paper, rows in rows_by_paper.items():
        counts = Counter(row.verdict for row in rows)
        tally = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        parts.append(f"## {PAPERS[paper]} (arXiv {paper})\n\n{len(rows)} claims: {tally}.\n")
        parts += _table("Main claims", MAIN_COLUMNS, (_main(row) for row in rows if row.claim.main))
        for heading, group in groupby(rows, key=lambda row: place_of(row.claim.where)[2]):
            parts += _table(f"{heading} of {paper}", COLUMNS, (_cells(row, f"{figures}/{paper}") for row in group))
    return "\n".join(parts)


def _table(heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |" for cells in rows]
    ruled = "|" + "---|" * len(columns)
    return [f"### {heading}\n", "\n".join(["| " + " | ".join(columns) + " |", ruled, *lines]) + "\n"] if lines else []


def _number(reading: Reading) -> str:
    return f"{number(reading.value)}, exact" if reading.floor == 0 and reading.low is None else reading.text


def explained(row: Row) -> str:
    """One claim in a few lines: where it stands and what it says, what was run, what decides, and the reasons."""
    said = [f"{row.claim.where}: {row.claim.claim}"]
    if row.result is not None and row.reading is not None:
        said += [f"run: {row.result.ran}", f"value: {_value(row)}", f"asked: {row.claim.asked()}"]
    return "\n".join(f"  {line}" for line in [*said, _reasons(row.claim)] if line)


def _reasons(claim: Claim) -> str:
    said = []
    if claim.definition:
        said.append(f"Definition: {claim.definition}.")
    if claim.untestable:
        said.append(f"{claim.untestable}.")
    if claim.why:
        said.append(f"{claim.why} (shown by {claim.shown_by}).")
    return " ".join(said)


def _value(row: Row) -> str:
    return "-" if row.reading is None else f"{_number(row.reading)}: {row.reading.meaning}"


def _asked(row: Row) -> str:
    return row.claim.asked() if row.claim.reading else "-"


def _main(row: Row) -> tuple[str, ...]:
    return f"[{row.claim.main}](#{row.claim.id})", _value(row), _asked(row), f"**{row.verdict}**"


def _cells(row: Row, folder: str) -> tuple[str, ...]:
    claim, result = row.claim, row.result
    verdict = f"**{row.verdict}** {_reasons(claim)}".rstrip()
    shown = "-" if result is None or not result.figures else f"[figure]({folder}/{result.figures[0]}.svg)"
    ran = "-" if result is None else f"{result.ran} (`{row.experiment.name}`)"
    named = f'<span id="{claim.id}">{claim.claim}</span> (`{claim.id}`)'
    return claim.where, named, ran, _value(row), _asked(row), verdict, shown
