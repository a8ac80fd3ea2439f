"""GLM 4: half of each head turned; the 0414 models have norms on both sides of a branch."""

from __future__ import annotations

from catenary.architecture import Architecture, pre_norm, sandwich
from catenary.configs.decoder import Block, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("glm")
def glm(fields: Fields) -> Architecture:
    """Llama's block; heads are 128 wide where ``head_dim`` is left out, whatever the width."""
    return _glm(fields, pre_norm)


@reads("glm4")
def glm4(fields: Fields) -> Architecture:
    """GLM with a norm behind each branch too, by class."""
    return _glm(fields, sandwich)


def _glm(fields: Fields, block: Block) -> Architecture:
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim, partial=0.5))
    return decoder(fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=block)
