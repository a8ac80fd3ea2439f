"""The whole network as its config describes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from catenary.architecture.embedding import Embedding
from catenary.architecture.layers import Layer
from catenary.architecture.norms import Norm


@dataclass(frozen=True)
class Architecture:
    """What a ``config.json`` says about routing at birth. No weights, no torch.

    ``causal_up_to`` is the length up to which attention sees all that its kernels say; beyond it the data chooses
    (None: at any length). ``assumed`` lists fields the config left out and the value taken; ``not_expressed`` lists
    what the config says that this description cannot hold; ``standing`` says how this model type was compared with
    real networks. All three are printed on every prediction's validity card.
    """

    name: str
    family: str
    width: int
    layers: tuple[Layer, ...]
    embedding: Embedding
    final_norm: Norm | None
    position: Literal["rope", "learned", "sinusoid", "alibi", "none"]
    rope_theta: float | None = None
    max_length: int | None = None
    causal_up_to: int | None = None
    vocabulary: int | None = None
    initialisation: str = ""
    assumed: tuple[str, ...] = ()
    not_expressed: tuple[str, ...] = ()
    source: str = ""
    standing: str = ""

    @property
    def depth(self) -> int:
        """Number of layers H."""
        return len(self.layers)

    @property
    def logit_variance(self) -> float:
        """Largest attention-logit variance v at birth over the layers; 0 without attention."""
        kinds = {attention for layer in set(self.layers) for attention in layer.attentions}
        return max((attention.logit_variance(self.width) for attention in kinds), default=0.0)

    @property
    def attends(self) -> bool:
        """Whether any layer has attention; where none has, there are no logits to speak of."""
        return any(layer.attentions for layer in self.layers)

    def describe(self) -> str:
        """One line: family, depth, width, heads, feed-forward, position coding, logit variance."""
        layer, _ = Counter(self.layers).most_common(1)[0]
        parts = [f"{self.name}: {self.family}, {self.depth} layers", f"width {self.width}"]
        for heads in layer.attentions[:1]:
            parts.append(f"{heads.heads} heads of {heads.head_dim} ({heads.kv_heads} key/value)")
        for inner in layer.feed_forwards[:1]:
            gated = "gated " if inner.gated else ""
            of = f" (top {inner.experts.top} of {inner.experts.count} experts)" if inner.experts else ""
            parts.append(f"{gated}{inner.activation} feed-forward {inner.width}{of}")
        norms = [norm for branch in layer.branches for norm in (branch.before, branch.after)]
        norms += [norm for step in layer.steps for norm in (step.before, step.after)]
        norm = next((norm for norm in norms if norm), self.final_norm)
        parts.append(f"{norm.kind} norm" if norm else "no norm")
        parts.append(f"position {self.position}")
        parts.append(f"logit variance {self.logit_variance:.3g}" if self.attends else "no attention")
        return ", ".join(parts)
