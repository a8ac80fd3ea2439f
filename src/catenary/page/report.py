"""Profiles to one self-contained HTML page, with each figure as SVG, PNG and PDF beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from catenary import __version__
from catenary.charts import FAINT, INK, MUTED, NOISE, Spec, averaging, describe, overlay, residuals, thinning
from catenary.comparison import Comparison, compare
from catenary.drawing import Curve, clean, curves
from catenary.errors import invalid
from catenary.figures import save_each, to_svg
from catenary.page import view
from catenary.page.answer import agreement, answers, ordered, subjects
from catenary.page.cite import bibtex
from catenary.page.claims import claims
from catenary.page.embed import asset, chart_colours, chart_library, data_link, json_text, packed
from catenary.page.template import policy, template
from catenary.profile import Profile
from catenary.sample import Sample
from catenary.shape import Shape
from catenary.shape import describe as shape_of
from catenary.store import make_folder, write_text

ENDS = 64
"""Tokens in each of the two close-ups: the regions first, 2-8 and 9-64 of a comparison."""

LARGEST_TABLE = 400_000
"""Bytes of CSV that a page carries inside itself; a longer table stays in the run's folder."""

_THEME = {INK: "--ink", MUTED: "--muted", FAINT: "--line", NOISE: "--noise"}


@dataclass(frozen=True)
class Figure:
    """One figure of the page: a file name, the still picture, the running chart's JSON, and its words."""

    name: str
    kind: str
    svg: Markup
    spec: Spec
    alternative: str
    caption: str
    note: str


@dataclass(frozen=True)
class Key:
    """One curve's entry in the legend: how it is drawn, what it is, what shape it has and how sure that is."""

    label: str
    colour: str
    dash: str
    shape: str
    verdict: str
    averaged: str
    sure: str


@dataclass(frozen=True)
class Group:
    """Curves that share a chart: heading, legend, the overlay and the close-ups of both ends."""

    heading: str
    keys: tuple[Key, ...]
    figure: Figure
    ends: tuple[Figure, ...]
    banded: bool
    averaged: bool


def write_report(
    items: Sequence[Profile | Sample],
    out: Path | str,
    *,
    title: str | None = None,
    notes: Sequence[str] = (),
    comparisons: Sequence[Comparison] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report of some profiles: one HTML file that needs nothing else, and its figures beside it.

    The page holds charts that answer the pointer and still pictures for readers without scripts, the shape of each
    curve, how far apart the curves are, validity cards, provenance, and what may be claimed. The same input gives
    the same bytes. Figures lie in ``figures/`` beside the page.

    Args:
        items: curves of one quantity; a sample gives one per condition and step.
        out: the page's path if it ends in ``.html``, else a folder for ``report.html``; folders are made.
        title: what the page is called; the model of the first curve that names one otherwise.
        notes: sentences for the head of the page, such as what was skipped and why.
        comparisons: what stands in the comparison table; by default every two curves of one length and condition,
            at most six.
        provenance: plain JSON values of the whole run.

    Raises:
        InvalidInput: for no curve, unlike quantities, or a profile of fewer than 5 positions.
    """
    single = view.parts(items)
    if not single:
        raise invalid("items", "must hold at least one profile", len(items))
    target = _page_path(out)
    make_folder(target.parent)
    shapes = {part.label: shape_of(part) for part in single}
    held = ordered(_default_comparisons(single) if comparisons is None else comparisons, single)
    charts: dict[str, Spec] = {}
    single = tuple(part for _, members in view.groups(single) for part in members)
    groups = [_group(n, heading, members, shapes, charts) for n, (heading, members) in enumerate(view.groups(single))]
    in_order = [shapes[part.label] for part in single]
    differences = [_residual(n, c, charts) for n, c in enumerate(held)]
    _export(charts, target.parent / "figures")
    origin = [(part.label, view.flat(part.provenance)) for part in single]
    library, script = chart_library(), asset("script.js")
    figures = [*(figure for g in groups for figure in (g.figure, *g.ends)), *differences]
    data = {figure.name: figure.spec | {"datasets": {"drawn": packed(figure.spec["datasets"]["drawn"])}}
            for figure in figures}
    quantity = single[0].quantity
    page = template("page.jinja").render(
        title=clean(title or view.model_name(single) or "Position profile", 120),
        notes=[clean(note, 600) for note in notes],
        quantity=quantity,
        answers=answers(single, shapes),
        agreement=agreement(held, single),
        lengths=[f"{length:,}" for length in sorted({part.length for part in single})],
        groups=groups,
        shapes=in_order,
        glance=view.glance(in_order),
        shape_tables=view.shape_tables(in_order),
        comparisons=list(zip(subjects(held, single), held, differences, strict=True)),
        comparison_tables=view.comparison_tables(held, subjects(held, single)) if held else (),
        claims=claims(view.contents(single)),
        cards=view.cards(single),
        origin=origin,
        provenance=view.flat(provenance or {}),
        bibtex=escape(bibtex()),
        csv=_csv_link(single),
        svg=data_link(groups[0].figure.svg.encode(), "image/svg+xml"),
        style=asset("style.css") + chart_colours(_THEME),
        library=library,
        script=script,
        policy=policy(library, script),
        data=json_text(data),
        version=__version__,
    )
    write_text(target, page)
    return target


def _page_path(out: Path | str) -> Path:
    path = Path(out)
    return path if path.suffix.lower() in (".html", ".htm") else path / "report.html"


def _default_comparisons(single: Sequence[view.Part]) -> list[Comparison]:
    """Pairs of one length, and of one condition where both say which; the prediction is held against the rest."""
    made = []
    for a, b in combinations(single, 2):
        conditions = {view.condition(part) for part in (a, b)} - {""}
        if a.length == b.length and len(conditions) <= 1:
            made.append((a, b))
    return [compare(a, b) for a, b in made[:6]]


def _group(
    n: int, heading: str, members: Sequence[view.Part], shapes: Mapping[str, Shape],
    charts: dict[str, Spec],
) -> Group:
    name = "profile" if n == 0 else f"profile-{n + 1}"
    figure = _overlay(name, "overlay", members, None, charts)
    length = members[0].length
    close = {part.length for part in members} == {length} and length >= 4 * ENDS
    ends = [("first", (1, ENDS)), ("last", (length - ENDS + 1, length))] if close else []
    drawn = [curve.profile.values for curve in curves(members)]
    ends = [(word, (a, b)) for word, (a, b) in ends if any(values[a - 1 : b].any() for values in drawn)]
    keys = tuple(_key(curve, part, shapes[part.label]) for curve, part in zip(curves(members), members, strict=True))
    return Group(heading, keys, figure,
                 tuple(_overlay(f"{name}-{word}", "end", members, span, charts) for word, span in ends),
                 *(any(layer["name"] == part for layer in charts[name]["layer"]) for part in ("band", "tokens")))


def _key(curve: Curve, part: view.Part, shape: Shape) -> Key:
    return Key(curve.label, curve.colour, " ".join(map(str, curve.dash)), curve.shape, shape.verdict.words,
               view.averaged(part), view.sureness(shape))


def _overlay(
    name: str, kind: str, members: Sequence[view.Part], span: tuple[int, int] | None,
    charts: dict[str, Spec],
) -> Figure:
    charts[name] = overlay(members, tokens=span)
    zeros = sum(int((curve.profile.values == 0).sum()) for curve in curves(members))
    notes = [averaging(members), thinning(members)] if span is None else []
    if zeros:
        notes.append(f"{zeros:,} values are exactly 0 and leave gaps on the logarithmic axis")
    caption = "" if span is None else f"Tokens {span[0]:,} to {span[1]:,}, one by one."
    return _figure(name, kind, charts[name], describe(members), caption, ". ".join(filter(None, notes)))


def _residual(n: int, held: Comparison, charts: dict[str, Spec]) -> Figure:
    name = f"ratio-{n + 1}"
    charts[name] = residuals(held.a, held.b, held)
    return _figure(name, "ratio", charts[name], held.words(), "", charts[name].get("title", {}).get("subtitle", ""))


def _figure(name: str, kind: str, chart: Spec, alternative: str, caption: str, note: str) -> Figure:
    """The page's version of a chart: no legend, title or background, which the page has in words and style."""
    spec = deepcopy(chart) | {"background": "transparent", "padding": 4}
    spec.pop("title", None)
    spec["params"] = [param for param in spec["params"] if param["name"] != "front"]
    for channels in (layer["encoding"] for layer in spec["layer"]):
        if "front" in str(channels.get("opacity", "")):
            channels["opacity"] = {"value": channels["opacity"]["condition"]["value"]}
        for channel in channels.values():
            if "legend" in channel:
                channel["legend"] = None
    return Figure(name, kind, Markup(to_svg(spec)), spec, alternative, caption, note)


def _export(charts: Mapping[str, Spec], folder: Path) -> None:
    make_folder(folder)
    for name, chart in charts.items():
        save_each(chart, folder / name)


def _csv_link(single: Sequence[view.Part]) -> Markup:
    """The drawn curves as a data link, or nothing where the table is too long to carry."""
    from catenary.store import to_csv

    table = to_csv({curve.label: curve.profile for part in single for curve in curves([part])}).encode()
    return data_link(table, "text/csv;charset=utf-8") if len(table) <= LARGEST_TABLE else Markup()
