"""One finding as a page: a verdict in words, its numbers, figures, a table, and all its data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from catenary import __version__
from catenary.charts import FAINT, INK, MUTED, Spec
from catenary.figures import save_each, to_svg
from catenary.page.cite import bibtex
from catenary.page.embed import asset, chart_colours, data_link
from catenary.page.template import policy, template
from catenary.provenance import canonical_json, versions
from catenary.reading import align
from catenary.store import make_folder, write_text

LARGEST_TABLE = 400_000
"""Bytes of CSV that a page carries inside itself; a longer table stays beside it."""

_CLEAR = {"background": "transparent", "padding": 4}

_THEME = {INK: "--ink", MUTED: "--muted", FAINT: "--line"}


@dataclass(frozen=True, eq=False)
class Plate:
    """One figure: a file name, the chart, what it shows in a sentence, and a caption."""

    name: str
    chart: Spec
    alternative: str
    caption: str


@dataclass(frozen=True, eq=False)
class Table:
    """A further table of a page: what it holds, its columns, and its cells as text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Exhibit:
    """What one verb found.

    Attributes:
        name: the files' name, such as "profile".
        kicker, title: head of the page.
        verdict: the answer in words.
        notes: sentences below it.
        numbers: names and values, printed.
        plates: one figure or more.
        caption, columns, rows: the table that the page shows; cells are text.
        data: every number behind the figures, one row each, with ``fields`` as names.
        parameters: what it was computed from, as JSON values.
        results: what was found, as JSON values.
        tables: more tables, below the first.
    """

    name: str
    kicker: str
    title: str
    verdict: str
    notes: tuple[str, ...]
    numbers: tuple[tuple[str, str], ...]
    plates: tuple[Plate, ...]
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    fields: tuple[str, ...]
    data: Sequence[Sequence[float | int | str | None]]
    parameters: Mapping[str, Any]
    results: Mapping[str, Any]
    tables: tuple[Table, ...] = ()

    def text(self) -> str:
        """Verdict, numbers and table as lines for a terminal."""
        parts = [self.verdict, *self.notes, "", align(self.numbers), "", align((self.columns, *self.rows))]
        for table in self.tables:
            parts += ["", table.caption, align((table.columns, *table.rows))]
        return "\n".join(parts)

    def record(self) -> dict[str, Any]:
        """Everything as JSON values: parameters, results, the data by column, and versions."""
        columns = {name: [row[k] for row in self.data] for k, name in enumerate(self.fields)}
        return {
            "finding": self.name, "verdict": self.verdict, "parameters": dict(self.parameters),
            "results": dict(self.results), "data": columns, "versions": versions(),
        }  # fmt: skip

    def to_csv(self) -> str:
        """The data, one row each; what is unknown is empty."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.fields)
        writer.writerows(self.data)
        return file.getvalue()


def write_exhibit(exhibit: Exhibit, out: Path | str) -> Path:
    """Write the page, ``NAME.csv``, ``NAME.json`` and the figures into the folder ``out``; the page's path.

    The page needs nothing else and runs no script. The same exhibit gives the same bytes.
    """
    folder = Path(out)
    make_folder(folder / "figures")
    table = exhibit.to_csv()
    for plate in exhibit.plates:
        save_each(plate.chart, folder / "figures" / plate.name)
    page = template("exhibit.jinja").render(
        exhibit=exhibit,
        pictures=[Markup(to_svg(plate.chart | _CLEAR)) for plate in exhibit.plates],
        parameters=[(name, str(value)) for name, value in exhibit.parameters.items()],
        csv=data_link(table.encode(), "text/csv;charset=utf-8") if len(table) <= LARGEST_TABLE else "",
        bibtex=escape(bibtex()),
        style=asset("style.css") + chart_colours(_THEME),
        policy=policy(),
        version=__version__,
    )
    write_text(folder / f"{exhibit.name}.csv", table)
    write_text(folder / f"{exhibit.name}.json", canonical_json(exhibit.record(), indent=1) + "\n")
    write_text(folder / f"{exhibit.name}.html", page)
    return folder / f"{exhibit.name}.html"
