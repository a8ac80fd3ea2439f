"""What a config says about how positions reach each other: the words that theory and models share.

A model is an embedding, layers and a final norm. A layer is a row of residual steps, a step adds one or more
branches to the stream, a branch mixes positions (attention) or channels (feed-forward). Nothing here reads a file,
and nothing here computes a profile: `configs` builds these objects, `theory` consumes them, `models` checks a real
network against them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from catenary.errors import NotApplicable

T = TypeVar("T")


@dataclass(frozen=True)
class Causal:
    """Mean attention at birth that is uniform over all tokens so far: A_ij = 1/i for j <= i (1-based)."""


@dataclass(frozen=True)
class Window:
    """Uniform over the last ``width`` tokens, the query's own included: A_ij = 1/min(i, w) for i - w < j <= i."""

    width: int


@dataclass(frozen=True)
class Chunk:
    """Uniform over the query's own chunk of ``width`` positions so far: nothing crosses a multiple of ``width``."""

    width: int


@dataclass(frozen=True)
class Alibi:
    """Exponential in the distance: A_ij proportional to exp(-slope (i - j)) for j <= i."""

    slope: float


@dataclass(frozen=True)
class Prefix:
    """The first ``length`` tokens see each other in both directions; after them attention is causal."""

    length: int


Kernel = Causal | Window | Chunk | Alibi | Prefix
"""The mean attention kernel of a head group."""


@dataclass(frozen=True)
class HeadGroup:
    """Query heads of one layer that share one mean attention kernel."""

    heads: int
    kernel: Kernel = field(default_factory=Causal)


@dataclass(frozen=True)
class Rotary:
    """Rotary positions: frequencies theta^(-2f/dims) over the first ``dims`` channels of a head, the rest unturned."""

    theta: float
    dims: int


@dataclass(frozen=True)
class Sink:
    """A learned logit per head that joins the softmax and carries no value, initialised N(mean, std^2)."""

    mean: float = 0.0
    std: float = 0.0


@dataclass(frozen=True)
class Gate:
    """Outputs multiplied by f(W x), one factor per channel, per head or per token; ``std`` is that of W's entries."""

    std: float
    per: Literal["channel", "head", "token"] = "channel"
    function: Literal["sigmoid", "softplus"] = "sigmoid"


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: keys, values (and queries) pass through a normalised low-rank vector.

    Keys and values share a latent of ``rank`` channels, queries have one of ``query_rank`` (None: straight from the
    stream). The first ``plain_dim`` channels of a head come from the latents, ``rotary_dim`` more come straight from
    the stream and are shared by all heads. Every matrix has the std of the attention's fields.
    """

    rank: int
    query_rank: int | None
    plain_dim: int
    rotary_dim: int
    value_dim: int


@dataclass(frozen=True)
class Attention:
    """The attention of one branch, as it is initialised.

    ``query_scale`` multiplies q.k before the softmax, ``softcap`` c then turns a logit z into c tanh(z/c). The stds
    are those of the weight matrices' entries. ``qk_norm`` gives every query and key unit rms, over each head or over
    all heads together. ``rotary`` is None where the layer does not turn them. ``value_dim`` is a head's channels of
    values where they are not ``head_dim``.
    """

    groups: tuple[HeadGroup, ...]
    kv_heads: int
    head_dim: int
    query_scale: float
    qk_norm: bool
    query_key_std: float
    value_std: float
    output_std: float
    rotary: Rotary | None = None
    softcap: float | None = None
    sink: Sink | None = None
    gate: Gate | None = None
    latent: Latent | None = None
    value_dim: int | None = None
    qk_norm_over: Literal["head", "heads"] = "head"

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return sum(group.heads for group in self.groups)

    def logit_variance(self, width: int) -> float:
        """Variance v of one attention logit q.k * query_scale at birth for unit-rms inputs, before any soft-capping.

        v = head_dim * query_scale^2 * (width * std^2)^2, and head_dim * query_scale^2 with QK-norm. With a latent,
        the plain channels see rank * std^2 per side (width * std^2 for a query straight from the stream) and the
        rotary channels of the keys width * std^2.
        """
        step = width * self.query_key_std**2
        if self.latent is not None:
            latent = self.latent
            query = step if latent.query_rank is None else latent.query_rank * self.query_key_std**2
            key = latent.rank * self.query_key_std**2
            return self.query_scale**2 * query * (latent.plain_dim * key + latent.rotary_dim * step)
        return self.head_dim * self.query_scale**2 * (1.0 if self.qk_norm else step**2)

    def gain(self, width: int) -> float:
        """Squared gain kappa_V^2 = (d sigma_V^2)(heads * value_dim * sigma_O^2) of the value path, without the gate.

        With a latent, its rank takes the place of d: the latent has unit rms.
        """
        seen = width if self.latent is None else self.latent.rank
        dim = self.latent.value_dim if self.latent is not None else self.value_dim or self.head_dim
        return seen * self.value_std**2 * self.heads * dim * self.output_std**2


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
class FeedForward:
    """A feed-forward network: W_down f(W_up x), or W_down (f(W_gate x) * (W_up x + offset)) when gated.

    With ``limit`` c, W_gate x is cut at c from above and W_up x at c and -c. With ``experts``, that many of them behind
    a router, each of this width. ``gate`` multiplies the output.
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


@dataclass(frozen=True)
class Norm:
    """A normalisation: ``rms`` (no mean removed) or ``layer``, as initialised (weight 1, bias 0)."""

    kind: Literal["rms", "layer"]
    epsilon: float


@dataclass(frozen=True)
class Branch:
    """What is added to the residual stream x: scale * after(mix(before(x))); a norm that is None is left out."""

    mix: Attention | FeedForward
    before: Norm | None = None
    after: Norm | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Step:
    """One residual step: with y = before(x), x becomes after(keep * y + the sum of its branches at y).

    Several branches in one step are parallel: all of them see the same y.
    """

    branches: tuple[Branch, ...]
    keep: float = 1.0
    before: Norm | None = None
    after: Norm | None = None


@dataclass(frozen=True)
class Layer:
    """The residual steps of one layer, in order."""

    steps: tuple[Step, ...]

    @property
    def branches(self) -> Iterator[Branch]:
        """All branches of all steps."""
        return (branch for step in self.steps for branch in step.branches)

    @property
    def attentions(self) -> tuple[Attention, ...]:
        """All attentions of this layer."""
        return tuple(branch.mix for branch in self.branches if isinstance(branch.mix, Attention))

    @property
    def feed_forwards(self) -> tuple[FeedForward, ...]:
        """All feed-forward networks of this layer."""
        return tuple(branch.mix for branch in self.branches if isinstance(branch.mix, FeedForward))

    @property
    def attention(self) -> Attention:
        """The attention of this layer; ``NotApplicable`` where it has none or several."""
        return _only(self.attentions, "attention")

    @property
    def feed_forward(self) -> FeedForward:
        """The feed-forward network of this layer; ``NotApplicable`` where it has none or several."""
        return _only(self.feed_forwards, "feed-forward network")

    @property
    def norm(self) -> Norm:
        """The norm in front of the branches of this layer; ``NotApplicable`` where they have none or unlike ones."""
        return _only(tuple({branch.before: None for branch in self.branches if branch.before}), "pre-norm")

    def with_mixers(self, attention: Attention | None = None, feed_forward: FeedForward | None = None) -> Layer:
        """This layer with another attention or feed-forward network in place of each of its own."""

        def changed(branch: Branch) -> Branch:
            new = attention if isinstance(branch.mix, Attention) else feed_forward
            return branch if new is None else replace(branch, mix=new)

        return Layer(tuple(replace(step, branches=tuple(map(changed, step.branches))) for step in self.steps))


def pre_norm(attention: Attention, feed_forward: FeedForward, norm: Norm, scale: float = 1.0) -> Layer:
    """x + scale * attention(norm(x)), then x + scale * feed_forward(norm(x)): Llama, GPT-2 and most others."""
    return Layer(tuple(Step((Branch(mix, before=norm, scale=scale),)) for mix in (attention, feed_forward)))


def parallel(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + attention(norm(x)) + feed_forward(norm(x)): GPT-NeoX, GPT-J, Phi, Falcon, Cohere."""
    return Layer((Step((Branch(attention, before=norm), Branch(feed_forward, before=norm))),))


def sandwich(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + norm(attention(norm(x))), then x + norm(feed_forward(norm(x))): Gemma 2 and 3, GLM 4."""
    return Layer(tuple(Step((Branch(mix, before=norm, after=norm),)) for mix in (attention, feed_forward)))


def post_branch(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + norm(attention(x)), then x + norm(feed_forward(x)): OLMo 2 and 3, EXAONE 4."""
    return Layer(tuple(Step((Branch(mix, after=norm),)) for mix in (attention, feed_forward)))


def post_norm(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """norm(x + attention(x)), then norm(x + feed_forward(x)): the first transformers, OPT-350m."""
    return Layer(tuple(Step((Branch(mix),), after=norm) for mix in (attention, feed_forward)))


@dataclass(frozen=True)
class Sinusoid:
    """Fixed position vectors of sines and cosines, one of each at the frequencies theta^(-f/span), f = 0, 1, ...

    The first position is ``offset``.
    """

    theta: float
    span: float
    offset: int = 0


@dataclass(frozen=True)
class Embedding:
    """What enters the first layer: norm(scale * e + p + t), e the vectors the network is fed.

    ``std`` is that of the fed vectors' entries (``inputs_embeds``; a scale inside the embedding module is in it),
    ``scale`` multiplies them afterwards. p is the position: ``position_std`` is that of learned positions' entries,
    ``sinusoid`` a fixed table. t is one vector that every token gets (the type of the only segment), ``shared_std``
    that of its entries. Where vectors of ``fed_width`` channels are projected to the stream's width,
    ``projection_std`` is that of the matrix's entries; ``projected`` says whether that happens before p and the norm
    or after them.
    """

    std: float
    position_std: float = 0.0
    scale: float = 1.0
    norm: Norm | None = None
    fed_width: int | None = None
    projection_std: float = 0.0
    projected: Literal["first", "last"] = "first"
    shared_std: float = 0.0
    sinusoid: Sinusoid | None = None


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
        norm = next((n for branch in layer.branches for n in (branch.before, branch.after) if n), self.final_norm)
        parts.append(f"{norm.kind} norm" if norm else "no norm")
        parts.append(f"position {self.position}, logit variance {self.logit_variance:.3g}")
        return ", ".join(parts)


def _only(found: tuple[T, ...], what: str) -> T:
    if len(found) != 1:
        raise NotApplicable(f"a layer with {len(found)} {what}s has not the one that was asked for")
    return found[0]
