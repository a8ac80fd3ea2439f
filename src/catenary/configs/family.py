"""The registry of model families: each family's file registers its reader here under its model types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from catenary.architecture import Architecture
from catenary.configs.fields import Fields
from catenary.protocols import Family
from catenary.registry import Registry

FAMILIES: Registry[Family] = Registry("model_type")

Reader = Callable[[Fields], Architecture]


@dataclass(eq=False)
class Described:
    """A family that is one function: the model types it reads, and what it leaves out of them (empty: nothing).

    ``defaults`` are beyond those of transformers' config class, which need not be repeated.
    """

    model_types: tuple[str, ...]
    reader: Reader
    approximate: str = ""
    defaults: Mapping[str, object] = field(default_factory=dict)

    def read(self, fields: Fields) -> Architecture:
        """The architecture; raises ``InvalidInput`` naming the field at fault."""
        return self.reader(fields)


def register(family: Family) -> Family:
    """Enter ``family`` under each of its model types and return it."""
    for model_type in family.model_types:
        FAMILIES.register(model_type, family)
    return family


def reads(*model_types: str, approximate: str = "") -> Callable[[Reader], Reader]:
    """Register the decorated function as the reader of these model types.

    ``approximate`` says in a few words what the Architecture cannot hold of them; it is printed with every prediction.
    """

    def enter(reader: Reader) -> Reader:
        register(Described(model_types, reader, approximate))
        return reader

    return enter
