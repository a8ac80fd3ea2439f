"""What a config says about how positions reach each other: the words that theory and models share.

A model is an embedding, layers and a final norm. A layer is a row of residual steps, a step adds one or more
branches to the stream, a branch mixes positions (attention) or channels (feed-forward). Nothing here reads a file,
and nothing here computes a profile: `configs` builds these objects, `theory` consumes them, `models` checks a real
network against them.
"""

from __future__ import annotations

from catenary.architecture.attention import Attention, Gate, Latent, Rotary, Sink
from catenary.architecture.embedding import Embedding, Sinusoid
from catenary.architecture.feed_forward import Bottleneck, Experts, FeedForward
from catenary.architecture.kernels import Alibi, Causal, Chunk, HeadGroup, Kernel, Prefix, Window
from catenary.architecture.layers import (
    Branch,
    Layer,
    Step,
    parallel,
    post_branch,
    post_norm,
    pre_norm,
    sandwich,
)
from catenary.architecture.network import Architecture
from catenary.architecture.norms import Norm
from catenary.architecture.recurrent import (
    GatedRecurrence,
    LinearAttention,
    Recurrence,
    SelectiveStateSpace,
    ShortConvolution,
    StateSpace,
    Steps,
)

__all__ = [
    "Alibi",
    "Architecture",
    "Attention",
    "Bottleneck",
    "Branch",
    "Causal",
    "Chunk",
    "Embedding",
    "Experts",
    "FeedForward",
    "Gate",
    "GatedRecurrence",
    "HeadGroup",
    "Kernel",
    "Latent",
    "Layer",
    "LinearAttention",
    "Norm",
    "Prefix",
    "Recurrence",
    "Rotary",
    "SelectiveStateSpace",
    "ShortConvolution",
    "Sink",
    "Sinusoid",
    "StateSpace",
    "Step",
    "Steps",
    "Window",
    "parallel",
    "post_branch",
    "post_norm",
    "pre_norm",
    "sandwich",
]
