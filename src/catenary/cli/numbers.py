"""What `catenary predict --theory rollout` takes beyond a number: lists in JSON files, and stored strengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_numbers(option: str, text: str | None) -> Any:
    """A number, comma-separated numbers, other text as it is; of a ``.json`` file its list.

    Of a ``strengths.json`` that `catenary strengths` wrote, the attention strengths of its last column: trained where
    there are trained ones, else untrained, else predicted.

    Raises:
        InvalidInput: a file that cannot be read, or holds neither.
    """
    from catenary.errors import invalid

    if text is None:
        return None
    if not text.endswith(".json"):
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            return text
        return numbers if len(numbers) > 1 else numbers[0]
    rule = "must be a JSON file of a list of numbers, or a strengths.json"
    try:
        held = json.loads(Path(text).read_text(encoding="utf-8"))
        if isinstance(held, dict):
            return [row["strength"] for row in held["results"]["columns"][-1]["rows"] if row["branch"] == "attention"]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise invalid(option, rule, text, " ".join(str(error).split())[:160]) from error
    if not isinstance(held, list):
        raise invalid(option, rule, text)
    return held
