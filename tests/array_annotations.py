"""The type checker of the tests: arrays against their jaxtyping annotations, where a checked function is called.

Annotations without an array are mypy's to check. At run time they must let a wrong value through to the code that
refuses it in its own words, which is what many tests ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its array annotations checked at every call, and the rest dropped."""
    hints = {name: hint for name, hint in function.__annotations__.items() if _holds_array(hint)}
    if not hints:
        return function
    function.__annotations__ = hints
    return _beartype(function)


def _holds_array(hint: object) -> bool:
    """Whether an array type stands anywhere in ``hint``."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(_holds_array(part) for part in get_args(hint))
