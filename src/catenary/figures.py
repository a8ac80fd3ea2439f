"""Charts of profiles for a notebook or a file: Altair charts, and SVG, PNG or PDF by suffix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from catenary import charts
from catenary.charts import HOVER, Spec
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.registry import Registry
from catenary.sample import Sample
from catenary.store import replacing

if TYPE_CHECKING:
    import altair

    Chart = altair.LayerChart | Spec
    """An Altair chart, or the Vega-Lite JSON of one."""


def overlay(
    items: Sequence[Profile | Sample], *, log: bool = True, tokens: tuple[int, int] | None = None
) -> altair.LayerChart:
    """Draw every profile over the token positions: bands behind, the last token as its own marker.

    A curve that scatters (a sample, or a profile averaged from one) is a line through its block log-means, the
    blocks of the verdict, over its single tokens, which are faint; its first token is a point. In contexts too short
    for five blocks, in close-ups (``tokens``), and for a theory, the line goes through the tokens.

    The x axis counts tokens from 1 where all profiles have one length, and is x = (j - 1/2)/L otherwise. The band
    is p16-p84 over sequences where there is one: of the blocks where the line is of blocks, else of the tokens. A
    value of exactly 0 leaves a gap on the logarithmic axis. Above L = 2000 about 1500 positions are drawn
    (``catenary.drawing.kept``) and the chart says so. On the running chart, a click on a legend entry brings its
    curve forward, and the parameters ``hidden`` (a list of labels), ``bands`` and ``tokens`` (true or false) can
    be set.

    Args:
        items: 1 to 6 curves of one quantity; a sample gives one curve per condition and step.
        log: logarithmic influence axis, or a linear one that starts at 0.
        tokens: draw only tokens first..last of each profile, counted from 1; the profiles then share one length.

    Raises:
        InvalidInput: as ``catenary.drawing.curves``; or ``tokens`` not an interval inside 1..L.
    """
    return _altair(charts.overlay(items, log=log, tokens=tokens))


def residuals(a: Profile | Sample, b: Profile | Sample) -> altair.LayerChart:
    r"""Draw \(\log_{10}(a_j / b_j)\) by position, over the band that two standard errors of the two curves span.

    The band is \(\pm 2 \sqrt{(s_a/a)^2 + (s_b/b)^2} / \ln 10\) around 0 from the standard errors s that the
    profiles carry (none counts as 0; no band where neither has one). The last token is its own marker. Positions
    where either value is 0 are left out. Where either curve scatters the line is the mean of each block, over
    faint tokens, as in ``overlay``; the band is then still that of one token.

    Raises:
        InvalidInput: when the two have different lengths or quantities, or hold more than one curve each.
    """
    return _altair(charts.residuals(a, b))


def to_svg(chart: Chart) -> str:
    """Draw a chart as one SVG element; text stays text, and no font or file is fetched."""
    import vl_convert

    return _named(str(vl_convert.vegalite_to_svg(still(chart))))


def _named(svg: str) -> str:
    """The picture with its gradients named after its own content.

    The library counts them over all it has drawn: the same chart would give other bytes the second time, and two
    pictures on one page, drawn by two processes, could share a name.
    """
    names = list(dict.fromkeys(re.findall(r'id="(gradient_\d+)"', svg)))
    if not names:
        return svg
    order = {name: str(number) for number, name in enumerate(names)}
    bare = re.sub(r"gradient_\d+", lambda found: order.get(found[0], found[0]), svg)
    own = hashlib.sha256(bare.encode()).hexdigest()[:8]
    return re.sub(r"gradient_\d+", lambda found: f"gradient-{own}-{order.get(found[0], found[0])}", svg)


def save(chart: Chart, path: Path | str) -> Path:
    """Write a chart as SVG, PNG (two pixels a point) or PDF, by the suffix of ``path``; the file appears whole.

    Raises:
        InvalidInput: for a suffix that is not registered, or a folder that is not there.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise invalid("path", f"must end in one of {', '.join(FORMATS)}", str(target))
    if not target.parent.is_dir():
        raise invalid("path", "must lie in an existing folder", str(target))
    return _write(to_svg(chart), target)


def save_each(chart: Chart, stem: Path) -> tuple[Path, ...]:
    """Write a chart as ``stem`` with every suffix there is, drawn once."""
    picture = to_svg(chart)
    return tuple(_write(picture, stem.with_name(f"{stem.name}{suffix}")) for suffix in FORMATS)


def still(chart: Chart) -> Spec:
    """The chart's Vega-Lite JSON without the layer that answers the pointer."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    layers = [layer for layer in spec["layer"] if layer.get("name") != HOVER]
    params = [param for param in spec["params"] if HOVER not in param.get("views", [])]
    return spec | {"layer": layers, "params": params}


def _write(svg: str, target: Path) -> Path:
    content = FORMATS[target.suffix.lower()](svg)
    with replacing(target) as file:
        file.write_bytes(content)
    return target


def _altair(spec: Spec) -> altair.LayerChart:
    import altair

    return altair.LayerChart.from_dict(spec)


def _png(svg: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=2))


def _pdf(svg: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_pdf(svg))


FORMATS: Registry[Callable[[str], bytes]] = Registry("figure format")
FORMATS.register(".svg", str.encode)
FORMATS.register(".png", _png)
FORMATS.register(".pdf", _pdf)
