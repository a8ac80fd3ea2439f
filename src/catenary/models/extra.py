"""torch and transformers, or the line that says how to install them.

Modules that need a network import ``torch`` from here, so that a missing extra is one clean line.
"""

from __future__ import annotations

from types import ModuleType

from catenary.errors import MissingResource

try:
    import torch
except ModuleNotFoundError as absent:
    raise MissingResource('torch is not installed; networks need the extra: pip install "catenary[models]"') from absent

__all__ = ["torch", "transformers"]


def transformers() -> ModuleType:
    """The transformers package, imported at the first call because that takes a second."""
    try:
        import transformers as package
    except ModuleNotFoundError as absent:
        raise MissingResource(
            'transformers is not installed; networks need the extra: pip install "catenary[models]"'
        ) from absent
    return package
