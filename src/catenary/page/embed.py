"""What a page carries inside itself: scripts, their hashes for the content policy, JSON and files as data links."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from catenary.drawing import PALETTE, PALETTE_DARK
from catenary.errors import InvalidInput
from catenary.store import write_text

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def json_text(value: Any) -> Markup:
    r"""JSON that is inert inside a ``<script>`` element: ``<``, ``>``, ``&`` and all non-ASCII as ``\uXXXX``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def packed(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as blocks of columns, a third of the size; ``script.js`` turns them back into rows.

    Neighbours of one curve that are all tokens, or all blocks of tokens, make one block. A column is a list, with
    null where a row lacks it, or one value that every row has.
    """
    blocks = []
    for _, members in itertools.groupby(rows, key=lambda row: (row.get("curve"), "block" in row, "from" in row)):
        block = list(members)
        names = dict.fromkeys(name for row in block for name in row)
        columns: dict[str, Any] = {name: [row.get(name) for row in block] for name in names}
        blocks.append({name: column[0] if len(block) > 1 and len(set(column)) == 1 else column
                       for name, column in columns.items()})
    return blocks


@functools.cache
def chart_library() -> Markup:
    """Vega, Vega-Lite and vega-embed as one script of about 0.9 MB, as packed in vl-convert; nothing is fetched.

    Packing takes some seconds, so the script is kept in the user's cache folder, one file per version of vl-convert;
    a cache that cannot be read or written is done without.
    """
    import vl_convert

    name = f"charts-{version('vl-convert-python')}.js"
    with contextlib.suppress(OSError, RuntimeError, UnicodeDecodeError):
        return Markup((cache_folder() / name).read_text(encoding="utf-8"))
    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")
    with contextlib.suppress(OSError, RuntimeError, InvalidInput):
        write_text(cache_folder() / name, script)
    return Markup(script)


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/catenary``, or ``.cache/catenary`` in the home folder; RuntimeError where there is none."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "catenary"


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
