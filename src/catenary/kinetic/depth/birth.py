r"""Which decay and which kinetic time an architecture has at birth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Alibi, Architecture, Attention, Branch, Causal, Kernel, Step, Window
from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import whole

TOKENS = 256
"""Tokens over which the stream's growth is followed: attention's own share of it falls as one over their number."""


@dataclass(frozen=True)
class HeadDecay:
    """Heads of one decay: their share of all attention, by squared gain, and lambda = slope times length."""

    share: float
    lam: float


@dataclass(frozen=True, eq=False)
class BirthKinetics:
    r"""An untrained architecture in the kinetic theory's terms.

    Attributes:
        name: the architecture's.
        length: tokens of the prompt.
        gains: \(g_l\), attention branch over residual stream, one per attention branch, first layer first.
        heads: shares and decays.
    """

    name: str
    length: int
    gains: Float64[np.ndarray, " branches"]
    heads: tuple[HeadDecay, ...]

    @property
    def mixing(self) -> Float64[np.ndarray, " branches"]:
        r"""\(\alpha_l = g_l/(1+g_l)\): \(1 + g_l A = (1 + g_l)[(1-\alpha_l) + \alpha_l A]\)."""
        return np.asarray(self.gains / (1 + self.gains))

    @property
    def c(self) -> float:
        r"""Kinetic time \(c = \sum_l \alpha_l\): the mean number of attention branches on a path, by weight."""
        return float(self.mixing.sum())

    @property
    def distance(self) -> float:
        r"""Bound on how far the number of branches on a path is from Poisson, \(\min(1, \frac1c) \sum_l \alpha_l^2\).

        In total variation, from 0 to 1 (Le Cam's bound with Barbour and Hall's factor).
        """
        return float(min(1.0, 1 / self.c) * (self.mixing @ self.mixing))

    @property
    def strength(self) -> float:
        r"""\(s = \sum_l g_l^2\), what independent value matrices make of the same gains (``path_sum_row``)."""
        return float(self.gains @ self.gains)

    @property
    def lam(self) -> float:
        """The decay, where all heads have one.

        Raises:
            NotApplicable: the heads have different decays; ``heads`` lists them.
        """
        if len(self.heads) > 1:
            low, high = self.heads[0].lam, self.heads[-1].lam
            raise NotApplicable(
                f"{self.name} has {len(self.heads)} decays from {low:.4g} to {high:.4g}: choose one; heads lists "
                "them with their shares"
            )
        return self.heads[0].lam

    def words(self) -> str:
        """One sentence."""
        decays = [head.lam for head in self.heads]
        lam = f"{decays[0]:.4g}" if len(decays) == 1 else f"{decays[0]:.4g} to {decays[-1]:.4g}"
        return (
            f"{self.name} at birth, {self.length:,} tokens: lambda = {lam}, kinetic time c = {self.c:.4g} "
            f"(attention branches on a mean path, were all values aligned; at most {self.distance:.2f} from Poisson)"
        )


def birth_kinetics(architecture: Architecture, length: int) -> BirthKinetics:
    r"""Decays and kinetic time of an untrained architecture.

    ALiBi of slope m is \(\lambda = mL\); attention without a bias is \(\lambda = 0\). Layer l passes influence on by
    \(1 + g_l A\), with \(g_l = \kappa_V\) times scale over the stream's rms, from second moments at the last of 256
    unrelated tokens. With every value matrix aligned with the stream the layers are, but for a factor, the bridge's
    convex stack with mixings \(\alpha_l = g_l/(1 + g_l)\), whose number of branches tends to Poisson of mean
    \(c = \sum\alpha_l\) where all \(\alpha_l\) are small; ``distance`` bounds what is missing, often much, because
    first layers mix strongly. At birth the matrices are independent instead: the mean response is 0 and squares add.
    So c places an architecture in the kinetic theory and predicts no birth profile; ``predict`` does.
    Source: derived here (docs/kinetic-bridge.md).

    Args:
        architecture: from ``read_config``.
        length: tokens L >= 2.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: attention is windowed, chunked or two-way within the length, or gated, or a part of the network
            has no law of its second moments.

    Example:
        >>> import catenary as ct
        >>> seen = birth_kinetics(ct.read_config("qwen2-0.5b"), 2048)
        >>> round(seen.c, 2), round(seen.distance, 2), seen.lam
        (6.9, 0.39, 0.0)
    """
    if not isinstance(architecture, Architecture):
        raise invalid("architecture", "must be an Architecture", architecture, "read_config(model) makes one")
    whole("length", length, 2)
    weights: dict[float, float] = {}
    gains = []
    for squared, attention in _squared_gains(architecture, int(length)):
        gains.append(math.sqrt(squared))
        for group in attention.groups:
            lam = _decay(group.kernel, int(length))
            weights[lam] = weights.get(lam, 0.0) + squared * group.heads / attention.heads
    total = sum(weights.values())
    heads = tuple(HeadDecay(weights[lam] / total, lam) for lam in sorted(weights))
    return BirthKinetics(architecture.name, int(length), np.array(gains), heads)


def _decay(kernel: Kernel, length: int) -> float:
    if isinstance(kernel, Alibi):
        return kernel.slope * length
    if isinstance(kernel, Causal) or (isinstance(kernel, Window) and kernel.width >= length):
        return 0.0
    raise NotApplicable(
        f"kinetic kernels are exponentials over the whole prompt, got {kernel}: choose a length that fits into it, "
        "or a PositionalKernel of your own"
    )


def _squared_gains(architecture: Architecture, length: int) -> Iterator[tuple[float, Attention]]:
    r"""\(g_l^2\) at the last token and the attention, for every attention branch in order."""
    from catenary.theory.birth import mixers, singles
    from catenary.theory.embedding import embedded
    from catenary.theory.steps import Move, Part

    tokens = min(length, TOKENS)
    mixer_of = mixers(architecture, singles(tokens), "uniform")
    stream = embedded(architecture, np.eye(tokens)).stream
    seen = False
    for step in (step for layer in architecture.layers for step in layer.steps):
        parts = tuple(Part(mixer_of(b), b.before, b.after, b.scale**2) for b in step.branches)
        moved = Move(parts, step.keep**2, step.before, step.after).forward(stream)
        for branch, passed in zip(step.branches, moved.passed.parts, strict=True):
            if isinstance(branch.mix, Attention):
                seen = True
                into = 1.0 if passed.into is None else float(passed.into[-1]) ** 2
                out = passed.energy if passed.out is None else float(passed.out[-1]) ** 2
                yield _gain(branch, architecture.width) * into * out / _kept(step), branch.mix
        stream = moved.stream
    if not seen:
        raise NotApplicable(f"{architecture.name} has no attention")


def _gain(branch: Branch, width: int) -> float:
    assert isinstance(branch.mix, Attention)
    if branch.mix.gate is not None:
        raise NotApplicable("the kinetic gain of gated attention is not known; use predict")
    return branch.mix.gain(width)


def _kept(step: Step) -> float:
    if step.keep == 0:
        raise NotApplicable("a step keeps nothing of its input: no residual stream to compare attention with")
    return step.keep**2
