"""Refuse a Python that is not supported, in words, before anything is installed."""

import sys

SUPPORTED = ((3, 11), (3, 13))

if not SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
    found = ".".join(map(str, sys.version_info[:3]))
    low, high = (".".join(map(str, v)) for v in SUPPORTED)
    sys.exit(
        f"catenary is tested on Python {low} to {high}; this is {found} ({sys.executable}). "
        f"Point make at another one, for example: make PYTHON=python{high} run"
    )
