"""Nemotron H and Nemotron 3: one branch per layer, Mamba 2, attention, a network or experts, as a pattern says."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Bottleneck, Branch, FeedForward, Layer, Norm, StateSpace, Step, Steps
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.decoder import (
    Sizes,
    assemble,
    attentions,
    read_feed_forward,
    read_head_dim,
    read_heads,
    read_kv_heads,
    read_norm,
    read_width,
)
from catenary.configs.experts import SCALE, read_experts
from catenary.configs.family import Described, register
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std
from catenary.configs.state_space import STATE, check_attends, note_strong_state
from catenary.errors import invalid

LETTERS = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
"""What the letters of ``hybrid_override_pattern`` stand for."""

OLDER = {"mamba": "linear_attention", "attention": "full_attention"}
"""Older names of the kinds of layers."""


def nemotron_h(fields: Fields) -> Architecture:
    r"""x + branch(norm(x)) in every layer; attention is not turned, networks are plain.

    With ``rescale_prenorm_residual`` the state spaces' output matrices are uniform of std
    \(1/\sqrt{3mH}\), m channels and H layers. Steps are cut at ``time_step_min`` from below. With ``moe_latent_size``
    the routed experts stand between two linear maps.
    """
    kinds = _kinds(fields)
    heads = read_heads(fields)
    sizes = Sizes(len(kinds), read_width(fields), heads, read_kv_heads(fields, heads), read_head_dim(fields),
                  initial_std(fields))  # fmt: skip
    norm = read_norm(fields, "rms", "layer_norm_epsilon")
    branches = {"full_attention": Branch(attentions(sizes)[0], before=norm)}
    if "linear_attention" in kinds:
        branches["linear_attention"] = Branch(_state_space(fields, sizes, norm), before=norm)
    if "mlp" in kinds:
        network = read_feed_forward(fields, sizes, gated=False, activation="mlp_hidden_act")
        branches["mlp"] = Branch(network, before=norm)
    if "moe" in kinds:
        branches["moe"] = Branch(_experts(fields, sizes), before=norm)
    layers = [Layer((Step((branches[kind],)),)) for kind in kinds]
    check_attends(layers, "nemotron_h")
    return assemble(fields, sizes, layers, final_norm=norm, position="none")


def _kinds(fields: Fields) -> tuple[str, ...]:
    """One kind per layer, from ``layers_block_type`` or the letters of ``hybrid_override_pattern``."""
    given: tuple[object, ...] | None = fields.optional_list("layer_types")
    name = "layers_block_type"
    if given is None and fields.has("hybrid_override_pattern"):
        name, letters = "hybrid_override_pattern", fields.text("hybrid_override_pattern")
        given = tuple(LETTERS.get(letter, letter) for letter in letters)
    if not given or len(given) > limits.DEPTH:
        raise invalid(name, f"must name the kind of each of 1..{limits.DEPTH} layers", given)
    kinds = tuple(OLDER.get(kind, kind) if isinstance(kind, str) else "" for kind in given)
    for index, kind in enumerate(kinds):
        if kind not in LETTERS.values():
            raise invalid(f"{name}[{index}]", f"must be one of {', '.join(LETTERS.values())}", kind[:60])
    return kinds


def _state_space(fields: Fields, sizes: Sizes, norm: Norm) -> StateSpace:
    heads = fields.integer("mamba_num_heads", most=limits.HEADS)
    head_dim = fields.integer("mamba_head_dim", most=limits.WIDTH)
    groups = fields.integer("n_groups", "mamba_n_groups", most=limits.HEADS)
    if heads % groups:
        raise invalid("n_groups", f"must divide mamba_num_heads={heads}", groups)
    least, most = (fields.number(f"time_step_{end}", f"mamba_dt_{end}", most=SCALE) for end in ("min", "max"))
    floor = fields.number("time_step_floor", "mamba_dt_init_floor", most=SCALE)
    if not 0 < least < most:
        raise invalid("time_step_min", f"must be in (0, time_step_max={most})", least)
    rescaled = fields.boolean("rescale_prenorm_residual")
    word = StateSpace(
        heads=heads,
        head_dim=head_dim,
        groups=groups,
        state=fields.integer("ssm_state_size", most=STATE),
        taps=fields.integer("conv_kernel", "mamba_d_conv", most=STATE),
        activation=fields.choice("mamba_hidden_act", known=ACTIVATIONS),
        input_std=sizes.std,
        tap_std=sizes.std,
        output_std=(3 * heads * head_dim * sizes.depth) ** -0.5 if rescaled else sizes.std,
        steps=Steps(range=(max(least, floor), most), limits=(least, float("inf"))),
        norm=norm,
    )
    note_strong_state(fields, word, sizes.width)
    return word


def _experts(fields: Fields, sizes: Sizes) -> FeedForward:
    latent = fields.optional_integer("moe_latent_size", most=limits.WIDTH)
    experts = read_experts(
        fields,
        sizes,
        count="n_routed_experts",
        score="sigmoid",
        normalised=fields.boolean("norm_topk_prob"),
        scale=fields.number("routed_scaling_factor", most=SCALE),
        shared=fields.integer("moe_shared_expert_intermediate_size", most=4 * limits.WIDTH),
        activation="mlp_hidden_act",
        grouped=True,
        gated=False,
    )
    if latent is None:
        return experts
    return replace(experts, bottleneck=Bottleneck(latent, sizes.std, sizes.std))


register(Described(("nemotron_h",), nemotron_h, defaults={"conv_kernel": 4}))
