"""What enters the first layer: embeddings, positions, and what is done to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catenary.architecture.norms import Norm


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
