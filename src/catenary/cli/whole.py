"""Whole numbers as people write them: 1024, 1_000_000, 1e6."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import typer

DIGITS = 18
"""More are no length."""


def whole_from(least: int) -> Callable[[str | int], int]:
    """A reader of whole numbers of at least ``least``, with underscores or an exponent.

    The reader raises ``typer.BadParameter`` for any other text.
    """

    def whole(text: str | int) -> int:
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise typer.BadParameter(_rule(least, text)) from None
        if not number.is_finite() or number.adjusted() > DIGITS or number != int(number) or number < least:
            raise typer.BadParameter(_rule(least, text))
        return int(number)

    return whole


def _rule(least: int, text: str | int) -> str:
    return f"must be a whole number of at least {least}, written as 1024, 1_000_000 or 1e6, got {str(text)[:60]!r}."
