"""The registry of model families: each family's file registers itself here under its model types."""

from __future__ import annotations

from catenary.protocols import Family
from catenary.registry import Registry

FAMILIES: Registry[Family] = Registry("model_type")


def register(family: Family) -> Family:
    """Enter ``family`` under each of its model types and return it."""
    for model_type in family.model_types:
        FAMILIES.register(model_type, family)
    return family
