"""Mistral: Llama's block with one sliding window on every layer, or none."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs.decoder import attentions, llama_decoder, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_window


@reads("mistral")
def mistral(fields: Fields) -> Architecture:
    """``sliding_window`` holds for every layer; left out it means 4096, and only null means none."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    return llama_decoder(
        fields, sizes, attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    )
