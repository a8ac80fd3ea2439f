"""Qwen 1.5, 2, 2.5 and 3: Llama's block, windows on the upper layers where they are asked for, QK-norm in Qwen 3."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs.decoder import attentions, llama_decoder, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turnings
from catenary.configs.windows import kernels, qwen_kinds, read_qwen_window


@reads("qwen2")
def qwen2(fields: Fields) -> Architecture:
    """Biases on q, k and v start at 0; published configs hold a window and ``use_sliding_window`` false."""
    return _qwen(fields, qk_norm=False)


@reads("qwen3")
def qwen3(fields: Fields) -> Architecture:
    """RMSNorm on every query and key comes with the class; ``head_dim`` is 128 where left out, whatever the width."""
    return _qwen(fields, qk_norm=True)


def _qwen(fields: Fields, *, qk_norm: bool) -> Architecture:
    sizes = read_sizes(fields)
    kinds = qwen_kinds(fields, sizes.depth)
    bands = kernels(fields, kinds, window=read_qwen_window(fields))
    turnings = read_turnings(fields, sizes.head_dim, kinds)
    return llama_decoder(fields, sizes, attentions(sizes, kernels=bands, turnings=turnings, qk_norm=qk_norm))
