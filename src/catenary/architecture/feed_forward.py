"""Feed-forward networks, and the routers that choose among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catenary.architecture.attention import Gate


@dataclass(frozen=True)
class Experts:
    """A router's choice among feed-forward networks: the ``top`` highest of ``count`` logits W x.

    ``score`` turns logits into weights: ``softmax`` over all experts, ``softmax-top`` over the chosen ones,
    ``sigmoid`` or ``sqrtsoftplus`` of each, or ``one``. ``normalised`` divides the chosen weights by their sum;
    ``scale`` multiplies them. They weigh each expert's output, or its input. ``shared`` is a network beside them that
    every token passes. With ``groups`` > 1 the experts stand in that many equal groups and are chosen from the
    ``top_groups`` best of them; a group is as good as its two highest weights together (``pair``) or its highest
    (``best``).
    """

    count: int
    top: int
    router_std: float
    score: Literal["softmax", "softmax-top", "sigmoid", "sqrtsoftplus", "one"] = "softmax"
    normalised: bool = False
    scale: float = 1.0
    weighed: Literal["output", "input"] = "output"
    shared: FeedForward | None = None
    groups: int = 1
    top_groups: int = 1
    group_score: Literal["pair", "best"] = "pair"


@dataclass(frozen=True)
class Bottleneck:
    """Linear maps in front of a network and behind it: the network sees and gives ``width`` channels.

    The entries of the map in front have the std ``input_std``, those of the one behind ``output_std``.
    """

    width: int
    input_std: float
    output_std: float


@dataclass(frozen=True)
class FeedForward:
    """A feed-forward network: W_down f(W_up x), or W_down (f(W_gate x) * (W_up x + offset)) when gated.

    With ``limit`` c, W_gate x is cut at c from above and W_up x at c and -c. With ``experts``, that many of them behind
    a router, each of this width. ``gate`` multiplies the output. With a ``bottleneck`` the network, or all its experts
    together, stand between two linear maps; the router and the network shared by all tokens see the stream itself.
    """

    width: int
    gated: bool
    activation: str
    input_std: float
    output_std: float
    experts: Experts | None = None
    offset: float = 0.0
    gate: Gate | None = None
    limit: float | None = None
    bottleneck: Bottleneck | None = None
