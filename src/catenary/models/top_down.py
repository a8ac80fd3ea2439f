"""The attentions of a network from the top layer down, without holding those of all layers at once.

One forward pass keeps the stream at every s-th layer; then the layers of each stretch, from the top, are run again on
it, and their attentions are handed out. Memory: depth/s streams and s attentions; time: two forward passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from jaxtyping import Float, Int

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.attention_call import AttentionCall, GivenCall
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.replay import LayerCall, agree, before_layers
from catenary.models.stream import run

Embedded = Float[torch.Tensor, "n L fed"]


def calls_top_down(
    anatomy: Anatomy,
    vectors: Embedded,
    mask: Int[torch.Tensor, "n L"],
    positions: Int[torch.Tensor, "n L"] | None = None,
) -> Iterator[AttentionCall]:
    """Every softmax attention of one forward pass, the last one first, without values; use inside ``undisturbed``.

    s is the root of the depth where attention keeps queries and keys, and 1 where the network's own code forms whole
    maps. Both this and whether layers can be run again are found on six vectors; a network whose layers share more
    than the stream (keys, a state) is run as a whole, and all its attentions are held.

    Args:
        anatomy: of the network, from ``dissect``.
        vectors: embedded tokens (n, L, fed).
        mask: ones on real tokens.
        positions: position ids, or the network's own count.

    Raises:
        NotApplicable: as ``all_calls``.
    """
    whole = pilot_calls(anatomy)
    own = any(isinstance(call, GivenCall) for call in whole)
    stretch = 1 if own else math.isqrt(max(len(anatomy.layers) - 1, 0)) + 1
    if _repeats(anatomy, whole[::-1], stretch):
        yield from _by_stretch(anatomy, vectors, mask, positions, stretch)
    else:
        held = all_calls(anatomy, vectors, mask, positions)
        while held:
            yield held.pop()


def _by_stretch(
    anatomy: Anatomy, vectors: Embedded, mask: torch.Tensor, positions: torch.Tensor | None, stretch: int
) -> Iterator[AttentionCall]:
    calls: list[LayerCall] = []

    def keep(call: LayerCall) -> None:
        # copied, because some types write into their input; a view would keep what it is a view of
        stream = call.stream.clone() if len(calls) % stretch == 0 else call.stream.new_empty(0)
        calls.append(LayerCall(call.module, stream, call.arguments, call.options, call.named))

    with torch.no_grad(), before_layers(anatomy, keep):
        run(anatomy.backbone, vectors.clone(), mask, positions)
    while calls:
        part = [calls.pop() for _ in range((len(calls) - 1) % stretch + 1)][::-1]
        found: list[AttentionCall] = []
        x = part[0].stream

        def receive(call: AttentionCall, to: list[AttentionCall] = found) -> None:
            to.append(replace(call, value=None))  # values are a third of what a call holds

        with torch.no_grad(), attention_calls(anatomy, (vectors.shape[0], vectors.shape[1]), receive):
            for layer in part:
                x = layer.again(x)
        while found:
            yield found.pop()


def _repeats(anatomy: Anatomy, expected: list[AttentionCall], stretch: int) -> bool:
    """Whether layers run again give the maps of the pilot run, layer by layer."""
    try:
        again = list(_by_stretch(anatomy, *_pilot(anatomy), None, stretch))
    except Exception:  # a layer run out of its place may fail in any way
        return False
    return [call.layer for call in again] == [call.layer for call in expected] and all(
        agree(a.rows(0, a.length), b.rows(0, b.length)) for a, b in zip(expected, again, strict=True)
    )


def all_calls(
    anatomy: Anatomy,
    vectors: Embedded,
    mask: Int[torch.Tensor, "n L"],
    positions: Int[torch.Tensor, "n L"] | None = None,
) -> list[AttentionCall]:
    """Every softmax attention of one forward pass, in order, all held at once.

    Raises:
        NotApplicable: for layers without softmax attention or with several in one layer, by name, or as
            ``attention_calls``.
    """
    calls: list[AttentionCall] = []
    with torch.no_grad(), attention_calls(anatomy, (vectors.shape[0], vectors.shape[1]), calls.append) as seen:
        run(anatomy.backbone, vectors.clone(), mask, positions)
    kind = type(anatomy.backbone).__name__
    if seen.without:
        named = ", ".join(f"{layer} ({mixer})" for layer, mixer in sorted(seen.without.items()))
        raise NotApplicable(f"{kind}: layers without softmax attention have no map: {named}")
    several = sorted(layer for layer, count in seen.calls.items() if count != seen.runs[layer])
    if several:
        raise NotApplicable(f"{kind}: layers {several} have several attentions each, which no single map stands for")
    return calls


def pilot_calls(anatomy: Anatomy) -> list[AttentionCall]:
    """The attentions of a run on six vectors.

    Raises:
        NotApplicable: as ``all_calls``.
    """
    return all_calls(anatomy, *_pilot(anatomy))


def _pilot(anatomy: Anatomy) -> tuple[torch.Tensor, torch.Tensor]:
    vectors = pilot_vectors(anatomy.embedding)
    return vectors, torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
