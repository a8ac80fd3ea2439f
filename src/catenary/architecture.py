"""What a config says about how positions reach each other: the words that theory and models share.

Nothing here reads a file, and nothing here computes a profile. `configs` builds these objects, `theory`
consumes them, `models` checks a real network against them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Causal:
    """Mean attention at birth that is uniform over all tokens so far: A_ij = 1/i for j <= i (1-based)."""


Kernel = Causal
"""The mean attention kernel of a head group. One type today; a window or ALiBi becomes a second."""


@dataclass(frozen=True)
class HeadGroup:
    """Query heads of one layer that share one mean attention kernel."""

    heads: int
    kernel: Kernel = field(default_factory=Causal)


@dataclass(frozen=True)
class Attention:
    """The attention branch of one layer, as it is initialised.

    ``query_scale`` multiplies q.k before the softmax. The stds are those of the weight matrices' entries.
    """

    groups: tuple[HeadGroup, ...]
    kv_heads: int
    head_dim: int
    query_scale: float
    qk_norm: bool
    query_key_std: float
    value_std: float
    output_std: float

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return sum(group.heads for group in self.groups)

    def logit_variance(self, width: int) -> float:
        """Variance v of one attention logit q.k * query_scale at birth for unit-rms inputs.

        v = head_dim * query_scale^2 * (width * std^2)^2, and head_dim * query_scale^2 with QK-norm.
        """
        unit = 1.0 if self.qk_norm else (width * self.query_key_std**2) ** 2
        return self.head_dim * self.query_scale**2 * unit

    def gain(self, width: int) -> float:
        """Squared gain kappa_V^2 = (d sigma_V^2)(heads * head_dim * sigma_O^2) of the value path."""
        return width * self.value_std**2 * self.heads * self.head_dim * self.output_std**2


@dataclass(frozen=True)
class FeedForward:
    """The feed-forward branch of one layer: W_down f(W_up x), or W_down (f(W_gate x) * W_up x) when gated."""

    width: int
    gated: bool
    activation: str
    input_std: float
    output_std: float


@dataclass(frozen=True)
class Norm:
    """A normalisation in front of a branch: ``rms`` (no mean removed) or ``layer``."""

    kind: Literal["rms", "layer"]
    epsilon: float


@dataclass(frozen=True)
class Layer:
    """One residual block: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    attention: Attention
    feed_forward: FeedForward
    norm: Norm


@dataclass(frozen=True)
class Embedding:
    """What enters the first block: token vectors of entry std ``std``, plus learned positions if any."""

    std: float
    position_std: float = 0.0


@dataclass(frozen=True)
class Architecture:
    """What a ``config.json`` says about routing at birth. No weights, no torch.

    ``causal_up_to`` is the length up to which attention reaches everything before it (a window that wide), None
    when it always does. ``assumed`` lists fields the config left out and the value taken; ``not_expressed`` lists
    what the config says that this description cannot hold. Both are printed on every prediction's validity card.
    """

    name: str
    family: str
    width: int
    layers: tuple[Layer, ...]
    embedding: Embedding
    final_norm: Norm | None
    position: Literal["rope", "learned", "none"]
    rope_theta: float | None = None
    max_length: int | None = None
    causal_up_to: int | None = None
    vocabulary: int | None = None
    initialisation: str = ""
    assumed: tuple[str, ...] = ()
    not_expressed: tuple[str, ...] = ()
    source: str = ""

    @property
    def depth(self) -> int:
        """Number of layers H."""
        return len(self.layers)

    @property
    def logit_variance(self) -> float:
        """Largest attention-logit variance v at birth over the layers."""
        return max(layer.attention.logit_variance(self.width) for layer in self.layers)

    def describe(self) -> str:
        """One line: family, depth, width, heads, feed-forward, position coding, logit variance."""
        kinds = Counter(self.layers)
        layer, _ = kinds.most_common(1)[0]
        heads = layer.attention
        gated = "gated " if layer.feed_forward.gated else ""
        return (
            f"{self.name}: {self.family}, {self.depth} layers, width {self.width}, "
            f"{heads.heads} heads of {heads.head_dim} ({heads.kv_heads} key/value), "
            f"{gated}{layer.feed_forward.activation} feed-forward {layer.feed_forward.width}, "
            f"{layer.norm.kind} norm, position {self.position}, logit variance {self.logit_variance:.3g}"
        )
