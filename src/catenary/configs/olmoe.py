"""OLMoE and FlexOlmo: experts in OLMo's pre-norm block, and in OLMo 2's with norms behind the branches."""

from __future__ import annotations

from catenary.architecture import Architecture, post_branch, pre_norm
from catenary.configs.decoder import Block, attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("olmoe")
def olmoe(fields: Fields) -> Architecture:
    """Pre-norm, with an RMSNorm over all heads' queries and keys; ``clip_qkv`` clamps queries, keys and values."""
    if fields.has("clip_qkv"):
        fields.note("clip_qkv: clipped queries, keys and values are read as unclipped")
    return _olmoe(fields, pre_norm)


@reads("flex_olmo")
def flex_olmo(fields: Fields) -> Architecture:
    """x + norm(branch(x)), with an RMSNorm over all heads' queries and keys."""
    return _olmoe(fields, post_branch)


def _olmoe(fields: Fields, block: Block) -> Architecture:
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True, qk_norm_over="heads")
    experts = read_experts(fields, sizes, width="intermediate_size", normalised=fields.flag("norm_topk_prob"))
    return decoder(fields, sizes, heads, experts, read_norm(fields), block=block)
