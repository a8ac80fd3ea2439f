"""Llama and everything published under its class: TinyLlama, SmolLM2, Falcon 3, Llama 2 to 3.3."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs.decoder import attentions, even_split, llama_decoder, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import kernels, read_kinds


@reads("llama")
def llama(fields: Fields) -> Architecture:
    """Heads must divide the width even where ``head_dim`` is given, as transformers asks.

    ``pretraining_tp`` splits matrices for old checkpoints and is not read; biases start at 0.
    """
    even_split(fields)
    sizes = read_sizes(fields)
    bands = kernels(fields, read_kinds(fields, sizes.depth))
    return llama_decoder(
        fields, sizes, attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    )
