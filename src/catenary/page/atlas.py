"""The atlas as one self-contained page: a sortable table with a small picture of every profile, and its data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from catenary import __version__
from catenary.drawing import clean
from catenary.explore.atlas import COLUMNS, MOVED, Atlas, Row
from catenary.page.cite import bibtex
from catenary.page.embed import asset, data_link
from catenary.page.sparkline import common_range, sparkline
from catenary.page.template import policy, template
from catenary.provenance import versions
from catenary.reading import number
from catenary.store import make_folder, write_text


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and the number it is sorted by (the text itself where None)."""

    text: str
    key: float | None = None


@dataclass(frozen=True)
class Line:
    """One row of the page's table."""

    model: str
    source: str
    about: str
    picture: Markup
    verdict: str
    cells: tuple[Cell, ...]
    light: str
    sentence: str
    knobs: tuple[tuple[str, str], ...]


def write_atlas(atlas: Atlas, out: Path | str, *, config: Mapping[str, Any] | None = None) -> Path:
    """Write the atlas into the folder ``out``: ``atlas.html``, ``atlas.csv`` and ``atlas.json``; the page's path.

    The page needs nothing else: a table that sorts by any column (by name without scripts), a picture of every
    profile on one scale, validity, and the knob that moves each index most. The same atlas gives the same bytes.
    ``config`` says what was asked for, and tells it from another atlas later.
    """
    folder = Path(out)
    make_folder(folder)
    low, high = common_range([row.profile for row in atlas.rows])
    table = atlas.to_csv()
    script = asset("atlas.js")
    page = template("atlas.jinja").render(
        length=f"{atlas.length:,}",
        columns=(*COLUMNS, "logit variance"),
        lines=[_line(row, low, high) for row in atlas.rows],
        same=[", ".join(names) for names in atlas.same],
        refused=[(entry.model, entry.reason) for entry in atlas.refused],
        decades=f"{high - low:.1f}",
        csv=data_link(table.encode(), "text/csv;charset=utf-8"),
        bibtex=escape(bibtex()),
        style=asset("style.css") + asset("atlas.css"),
        script=script,
        policy=policy(script),
        version=__version__,
    )
    write_text(folder / "atlas.csv", table)
    write_text(folder / "atlas.html", page)
    data = {"length": atlas.length, "versions": versions(), "config": dict(config or {}), "rows": atlas.records()}
    write_text(folder / "atlas.json", json.dumps(data, indent=1, sort_keys=True) + "\n")
    return folder / "atlas.html"


def _line(row: Row, low: float, high: float) -> Line:
    a, card = row.architecture, row.profile.card
    logits = Cell(number(a.logit_variance), a.logit_variance) if a.attends else Cell("no attention", math.nan)
    return Line(
        clean(row.model, 60),
        clean(row.source, 120),
        f"{a.family}, {a.depth} layers, width {a.width:,}",
        sparkline(row.profile, low, high),
        row.shape.verdict.words,
        (*(Cell(number(v) if v == v else "undefined", v) for v in row.numbers().values()), logits),
        card.light if card else "",
        card.sentence if card else "",
        tuple(zip(MOVED, row.knobs, strict=False)),
    )
