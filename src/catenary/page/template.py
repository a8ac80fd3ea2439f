"""Templates of the pages: text from outside is one printable, escaped line, and only our own scripts may run."""

from __future__ import annotations

import functools
from typing import Any

from markupsafe import Markup

from catenary.drawing import clean
from catenary.page.embed import hash_source


def template(name: str) -> Any:
    """The Jinja template ``name``; an undefined value in it is an error."""
    return _environment().get_template(name)


def policy(*scripts: str) -> Markup:
    """The content policy of a page that runs exactly these inline scripts and asks nothing of the network."""
    allowed = " ".join(map(hash_source, scripts))
    return Markup(
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(loader=PackageLoader("catenary", "page"), autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True, finalize=_printable)


def _printable(value: Any) -> Any:
    """Text from outside as one printable line; marked-up text is ours and passes as it is."""
    return clean(value, 4000) if type(value) is str and value else value
