"""What a page carries inside itself: scripts, their hashes for the content policy, JSON and files as data links."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from catenary.drawing import PALETTE, PALETTE_DARK

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def json_text(value: Any) -> Markup:
    r"""JSON that is inert inside a ``<script>`` element: ``<``, ``>``, ``&`` and all non-ASCII as ``\uXXXX``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def packed(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as one block of columns per curve, a third of the size; ``script.js`` turns them back into rows.

    A column is a list, with null where a row lacks it; ``curve`` is one word for the whole block.
    """
    blocks = []
    for curve, members in itertools.groupby(rows, key=lambda row: row.get("curve")):
        block = list(members)
        names = dict.fromkeys(name for row in block for name in row if name != "curve")
        columns: dict[str, Any] = {name: [row.get(name) for row in block] for name in names}
        blocks.append(columns if curve is None else {"curve": curve, **columns})
    return blocks


@functools.cache
def chart_library() -> Markup:
    """Vega, Vega-Lite and vega-embed as one script of about 0.9 MB, as packed in vl-convert; nothing is fetched."""
    import vl_convert

    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return Markup(script.replace("</script", "<\\/script"))


@functools.cache
def asset(name: str) -> Markup:
    """A style sheet or script that lies beside this file."""
    return Markup((files("catenary.page") / name).read_text(encoding="utf-8"))


def hash_source(script: str) -> str:
    """The content-policy source that allows exactly this inline script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def data_link(content: bytes, kind: str) -> Markup:
    """A file as a ``data:`` address."""
    return Markup(f"data:{kind};base64,{base64.b64encode(content).decode()}")


def chart_colours(names: dict[str, str]) -> Markup:
    """Style rules that give each colour written into a chart its twin for the reader's colour scheme.

    ``names`` maps a colour of the chart to the style variable that replaces it; line colours are ``--curve-0`` on.
    A rule beats the presentation attribute that a chart carries, so still and running charts follow alike.
    """
    table = {colour: f"--curve-{n}" for n, colour in enumerate(PALETTE)} | names
    rules = [f".chart [{part}='{colour}']{{{part}:var({name})}}" for colour, name in table.items()
             for part in ("fill", "stroke")]
    light = ";".join(f"--curve-{n}:{colour}" for n, colour in enumerate(PALETTE))
    dark = ";".join(f"--curve-{n}:{colour}" for n, colour in enumerate(PALETTE_DARK))
    return Markup(
        f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n" + "\n".join(rules)
    )
