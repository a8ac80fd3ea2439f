"""Model types that are refused by name, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

REFUSALS: Mapping[str, str] = {}
"""Model type to reason; a type is either here or has a family."""
