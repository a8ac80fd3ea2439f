"""Where a number came from: versions and digests, as plain JSON values without clock, host or path."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from typing import Any

_PACKAGES = ("catenary", "numpy", "scipy", "torch", "transformers", "tokenizers")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers; those not installed are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def canonical_json(value: Any, *, indent: int | None = None) -> str:
    """JSON with sorted keys and no NaN: equal values give equal bytes.

    Raises ``ValueError`` on NaN or infinity, which JSON cannot hold; store ``None`` and a reason instead.
    """
    return json.dumps(value, sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False)


def digest(value: Mapping[str, Any], length: int = 16) -> str:
    """First ``length`` hex digits of the SHA-256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
