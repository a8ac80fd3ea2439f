"""Mixtral, MiniMax M2 and Phi-3.5-MoE: Llama's block with experts in every layer."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning, read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_window


@reads("mixtral")
def mixtral(fields: Fields) -> Architecture:
    """A softmax over all experts, renormalised over the chosen; ``sliding_window`` holds for every layer."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    heads = attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    experts = read_experts(fields, sizes, width="intermediate_size", count="num_local_experts", normalised=True)
    return decoder(fields, sizes, heads, experts, read_norm(fields))


@reads("minimax_m2")
def minimax_m2(fields: Fields) -> Architecture:
    """Sigmoid scores, an RMSNorm over all heads' queries and keys, and the first ``rotary_dim`` channels turned."""
    sizes = read_sizes(fields)
    turned = fields.optional_integer("rotary_dim", most=sizes.head_dim)
    turning = read_turning(fields, sizes.head_dim, partial=1.0 if turned is None else turned / sizes.head_dim)
    experts = read_experts(
        fields, sizes, width="intermediate_size", count="num_local_experts", score="sigmoid", normalised=True
    )
    heads = attentions(sizes, turnings=turning, qk_norm=True, qk_norm_over="heads")
    return decoder(fields, sizes, heads, experts, read_norm(fields))


@reads("phimoe", approximate="each of the two chosen experts has weight 1, which holds unless two logits nearly tie")
def phimoe(fields: Fields) -> Architecture:
    """LayerNorm, and two experts whose weights are softmaxes over the logits that nearly tie with theirs."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    heads = attentions(sizes, kernels=bands, turnings=_phimoe_turning(fields, sizes.head_dim))
    experts = read_experts(fields, sizes, width="intermediate_size", count="num_local_experts", score="one")
    return decoder(fields, sizes, heads, experts, read_norm(fields, "layer", "rms_norm_eps"))


def _phimoe_turning(fields: Fields, head_dim: int) -> Turning:
    """The rotation; ``short_mscale`` multiplies queries and keys up to the original context, ``long_mscale`` beyond."""
    turning = read_turning(fields, head_dim)
    part = fields.optional_part("rope_scaling") or fields.optional_part("rope_parameters")
    short = part.optional_number("short_mscale", most=100.0) if part is not None else None
    if part is None or short is None:
        return turning
    if part.optional_number("long_mscale", most=100.0) != short:
        fields.note("long_mscale: beyond the original context logits have another factor, which is left out")
    return replace(turning, logit_factor=short**2)
