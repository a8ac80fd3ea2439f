"""The attention of one branch: heads, rotation, scores, sinks, gates, latents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catenary.architecture.kernels import HeadGroup


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
