"""Upper bounds on sizes in a config: far above every published model, far below what would exhaust a machine."""

from __future__ import annotations

DEPTH = 10_000
"""Layers. Published models stay below 200; the deepest experiments on record use 1,000."""

HEADS = 1 << 16
"""Query or key/value heads, and entries per head."""

WIDTH = 1 << 22
"""Residual width and feed-forward width; published models stay below 2^17."""

VOCABULARY = 1 << 28
"""Tokens; published vocabularies stay below 2^19."""

POSITIONS = 1 << 40
"""Context lengths and windows; some configs write 10^6 or more for "no limit"."""

STD = 1.0
"""Initial standard deviations; the bound that transformers itself sets in its Llama config."""

THETA = 1e15
"""RoPE base; 10^11 is the largest seen in a published config."""
