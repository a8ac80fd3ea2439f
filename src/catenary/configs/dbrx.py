"""DBRX: experts in every layer behind LayerNorms, attention and experts described by objects of their own."""

from __future__ import annotations

from catenary.architecture import Architecture, Experts, FeedForward, Norm
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.decoder import attentions, decoder, even_split, read_heads, read_sizes
from catenary.configs.experts import EXPERTS
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.errors import InvalidInput, NotApplicable

NORM = Norm("layer", 1e-5)
"""The class gives its LayerNorms torch's own epsilon."""

ORDER = "moe_normalize_expert_weights"
"""The order of the norm by which chosen weights are divided, null for none."""


@reads("dbrx")
def dbrx(fields: Fields) -> Architecture:
    """``attn_config`` and ``ffn_config`` hold key/value heads and experts; a softmax over all experts, renormalised."""
    attention, ffn = fields.optional_part("attn_config"), fields.optional_part("ffn_config")
    if attention is None or ffn is None:
        raise InvalidInput("attn_config and ffn_config must be objects; dbrx needs both")
    kv_heads = attention.optional_integer("kv_n_heads", most=limits.HEADS) or 1
    sizes = read_sizes(fields, head_dim=even_split(fields), kv_heads=kv_heads)
    if read_heads(fields) % kv_heads:
        raise InvalidInput(f"n_heads must be a multiple of attn_config.kv_n_heads={kv_heads}")
    base = attention.optional_number("rope_theta", least=1.0, most=limits.THETA)
    if attention.has("clip_qkv"):
        fields.note("attn_config.clip_qkv: clipped queries, keys and values are read as unclipped")
    order = ffn.optional_number(ORDER, most=100.0) if ffn.knows(ORDER) else 1.0
    if order not in (None, 1.0):
        raise NotApplicable(f"dbrx with {ORDER}={order:g}: only 1 and null are described")
    part = ffn.optional_part("ffn_act_fn")
    experts = FeedForward(
        width=ffn.integer("ffn_hidden_size", most=limits.WIDTH),
        gated=True,
        activation="silu" if part is None else part.choice("name", known=ACTIVATIONS),
        input_std=sizes.std,
        output_std=sizes.std,
        experts=Experts(
            count=ffn.integer("moe_num_experts", most=EXPERTS),
            top=ffn.integer("moe_top_k", most=EXPERTS),
            router_std=sizes.std,
            normalised=order == 1.0,
        ),
    )
    return decoder(
        fields, sizes, attentions(sizes, turnings=read_turning(fields, sizes.head_dim, theta=base)), experts, NORM
    )
