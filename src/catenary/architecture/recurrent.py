"""Layers that mix positions without a softmax: short convolutions, linear attention with a decay, state spaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from catenary.architecture.attention import Gate
from catenary.architecture.norms import Norm


@dataclass(frozen=True)
class ShortConvolution:
    """W_out (c * conv(b * x)) with b, c and x linear in the input: a kernel of ``taps`` weights per channel.

    ``width`` counts the channels, ``tap_std`` is the kernels' weights' std.
    """

    width: int
    taps: int
    input_std: float
    tap_std: float
    output_std: float


@dataclass(frozen=True)
class LinearAttention:
    """Attention without a softmax: o_i = sum over j <= i of (q_i . k_j) exp(-slope (i - j)) v_j, one slope per head.

    Queries, keys and values are ``activation`` of linear maps of the input. The outputs of all heads together pass
    ``norm``, are multiplied by ``gate`` and then by W_out.
    """

    slopes: tuple[float, ...]
    head_dim: int
    activation: str
    input_std: float
    output_std: float
    norm: Norm
    gate: Gate


@dataclass(frozen=True)
class Steps:
    """Step sizes softplus(w . x + b), cut to ``limits``; b is ``bias``, or drawn so that softplus(b) is

    log-uniform over ``range``.
    """

    bias: float = 0.0
    range: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class StateSpace:
    """Mamba 2: o_i = sum over j <= i of (c_i . b_j) exp(-rate sum over j < l <= i of t_l) t_j x_j + skip x_i.

    b, c and x are ``activation`` of a convolution over ``taps`` tokens of linear maps of the input, t the ``steps`` of
    each head. Head h of 1, ..., ``heads`` has the rate h; ``groups`` of heads share b and c of ``state`` entries. The
    outputs are multiplied by silu(W x), before or behind ``norm`` over each group's channels (None: no norm).
    ``input_scales`` multiply x, b, c, t's w . x and the gate's input.
    """

    heads: int
    head_dim: int
    groups: int
    state: int
    taps: int
    activation: str
    input_std: float
    tap_std: float
    output_std: float
    steps: Steps
    norm: Norm | None
    norm_at: Literal["behind gate", "before gate"] = "behind gate"
    skip: float = 1.0
    input_scales: tuple[float, float, float, float, float] = (1.0, 1.0, 1.0, 1.0, 1.0)

    def own_share(self, width: int) -> float:
        r"""Energy of a token's own product (c.b) t beside that of the skip, to leading order in small activations.

        \(N (P_b/4)(P_c/4)\,E[t^2]/skip^2\) with P the variance behind the convolution of unit inputs and silu(z) near
        z/2. Where it is not small the norm scatters with c.b, which all heads of a group share.
        """
        step = width * self.input_std**2
        inside = step * self.taps * self.tap_std**2
        _, key, query, time, _ = (scale**2 for scale in self.input_scales)
        mean = self.steps.range[1] if self.steps.range else math.log1p(math.exp(self.steps.bias))
        slope = -math.expm1(-mean)
        square = mean**2 + slope**2 * step * time
        return self.state * (inside / 4) ** 2 * key * query * square / self.skip**2


@dataclass(frozen=True)
class GatedRecurrence:
    r"""Griffin's RG-LRU: W_out (f(W x) * h), h_i = a_i h_{i-1} + sqrt(1 - a_i^2) g_i z_i, z = conv(W x), per channel.

    The input gate g and the exponent r of a = \(\lambda^{8r}\) are sigmoids of block-diagonal maps of z; the first
    token's root is 1. ``width`` counts the channels, the convolution has ``taps`` weights of std ``tap_std`` per
    channel, \(\lambda^2\) is drawn uniformly between the squares of ``radii``. ``gate_variance`` is that of the
    sigmoids' inputs.
    """

    width: int
    taps: int
    activation: str
    input_std: float
    tap_std: float
    output_std: float
    radii: tuple[float, float]
    gate_variance: float


@dataclass(frozen=True)
class SelectiveStateSpace:
    """Mamba 1: y_i = u_i + sum over j <= i and n of c_in b_jn exp(-n sum over j < l <= i of t_l) t_j u_j, per channel.

    u is ``activation`` of a convolution over ``taps`` tokens of a linear map of the input; b and c of ``state``
    entries n = 1, 2, ..., and ``rank`` numbers behind the steps, are linear in all ``width`` channels of u
    (``project_std``); the ``steps`` t of a channel are softplus of a linear map of those numbers (``step_std``) and
    a bias. With ``norm``, b, c and the numbers are normalised. The output is W_out (silu(W x) * y).
    """

    width: int
    state: int
    rank: int
    taps: int
    activation: str
    input_std: float
    tap_std: float
    project_std: float
    step_std: float
    output_std: float
    steps: Steps
    norm: Norm | None = None


Recurrence = ShortConvolution | LinearAttention | StateSpace | GatedRecurrence | SelectiveStateSpace
"""What mixes positions without a softmax."""
