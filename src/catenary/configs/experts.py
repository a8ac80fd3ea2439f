"""Mixtures of experts as configs name them: router, experts, the network beside them, which layers have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from catenary.architecture import Experts, FeedForward, Gate
from catenary.configs import limits
from catenary.configs.decoder import Sizes, read_feed_forward
from catenary.configs.fields import Fields
from catenary.errors import invalid

Score = Literal["softmax", "softmax-top", "sigmoid", "one"]

EXPERTS = 1 << 16
"""Upper bound of a number of experts; published ones stay below 1,000."""

SCALE = 1e6
"""Upper bound of a factor on routed outputs."""


def read_experts(
    fields: Fields,
    sizes: Sizes,
    *,
    width: str | int = "moe_intermediate_size",
    count: str = "num_experts",
    top: str = "num_experts_per_tok",
    score: Score = "softmax",
    normalised: bool = False,
    scale: float = 1.0,
    shared: int = 0,
    shared_gate: Gate | None = None,
    activation: str = "hidden_act",
    grouped: bool = False,
    group_score: Literal["pair", "best"] = "pair",
    router_std: float | None = None,
    weighed: Literal["output", "input"] = "output",
    **more: Any,
) -> FeedForward:
    """Experts of one ``width`` behind a router whose matrix has the std of all others, unless said otherwise.

    ``count``, ``top`` and ``width`` are field names. ``shared`` is the width of the network that every token passes (0:
    none), ``shared_gate`` multiplies its output. With ``grouped``, experts are chosen from the ``topk_group`` best of
    ``n_group`` groups, by ``group_score``. ``more`` goes to the experts' networks and the shared one.

    Raises:
        InvalidInput: a field is missing or out of range, or more experts are chosen than there are.
    """
    experts = fields.integer(count, most=EXPERTS)
    chosen = fields.integer(top, most=EXPERTS)
    if chosen > experts:
        raise invalid(fields.given_name(top), f"must be at most {fields.given_name(count)}={experts}", chosen)
    groups = fields.integer("n_group", most=EXPERTS) if grouped else 1
    beside = (
        read_feed_forward(fields, sizes, width=shared, activation=activation, gate=shared_gate, **more)
        if shared
        else None
    )
    router = Experts(
        count=experts,
        top=chosen,
        router_std=sizes.std if router_std is None else router_std,
        score=score,
        normalised=normalised,
        scale=scale,
        weighed=weighed,
        shared=beside,
        groups=groups,
        top_groups=fields.integer("topk_group", most=groups) if grouped else 1,
        group_score=group_score,
    )
    if experts % groups:
        raise invalid("n_group", f"must divide {fields.given_name(count)}={experts}", groups)
    return read_feed_forward(fields, sizes, width=width, activation=activation, experts=router, **more)


def multiple(fields: Fields, width: str, times: str) -> int:
    """The width of ``times`` experts together, 0 where there are none."""
    number = fields.optional_integer(times, least=0, most=EXPERTS) or 0
    return number * fields.integer(width, most=limits.WIDTH)


def where_sparse(fields: Fields, depth: int, otherwise: Sequence[bool]) -> tuple[bool, ...]:
    """Which layers have experts, from ``mlp_layer_types`` or as given."""
    kinds = fields.optional_texts("mlp_layer_types", count=depth)
    if kinds is None:
        return tuple(otherwise)
    for kind in kinds:
        if kind not in ("dense", "sparse"):
            raise invalid("mlp_layer_types", "must hold 'dense' and 'sparse'", kind[:60])
    return tuple(kind == "sparse" for kind in kinds)


def after_dense(fields: Fields, depth: int, name: str = "first_k_dense_replace") -> tuple[bool, ...]:
    """Experts in all layers but the first ``name``."""
    first = fields.integer(name, least=0, most=limits.DEPTH)
    return tuple(index >= first for index in range(depth))


def mixed(where: Sequence[bool], sparse: FeedForward, dense: FeedForward) -> tuple[FeedForward, ...]:
    """``sparse`` where a layer has experts, else ``dense``."""
    return tuple(sparse if flag else dense for flag in where)


def sparse_and_dense(
    fields: Fields, sizes: Sizes, where: Sequence[bool], sparse: FeedForward, **dense: Any
) -> tuple[FeedForward, ...]:
    """``mixed`` with the config's dense network, whose width decides the shape even where no layer has one."""
    return mixed(where, sparse, read_feed_forward(fields, sizes, **dense))
