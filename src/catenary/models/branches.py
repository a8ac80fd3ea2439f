"""Where a layer's attention and feed-forward branches can be cut, found by what cutting does.

With a branch cut, no gradient flows through its output, and the layer's output is what it was. Right cuts leave the
identity when both are made, no other position when attention is cut, and some when the feed-forward is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.replay import Replay, pull_back, record_layers
from catenary.models.stream import outputs_of

TOLERANCE = 1e-3
"""Of a gradient against the identity, relative to its norm: rounding is 1e-7, a branch left over 1e-2 or more.

Half precision is allowed its own epsilon, 8e-3 in bfloat16.
"""


@dataclass(frozen=True, eq=False)
class Branches:
    """The modules of one layer whose outputs are cut; ``feed_forward`` is None in a layer without one."""

    attention: torch.nn.Module
    feed_forward: torch.nn.Module | None


@contextmanager
def cut(modules: Iterable[torch.nn.Module | None]) -> Iterator[None]:
    """Detach the outputs of some modules while the context is open."""
    def detach(_: torch.nn.Module, __: object, output: object) -> object:
        return _detached(output)

    with ExitStack() as stack:
        for module in modules:
            if module is not None:
                stack.callback(module.register_forward_hook(detach).remove)
        yield


def find_branches(anatomy: Anatomy) -> tuple[Branches, ...]:
    """The cuts of every layer call, in order, tried out on a pilot run of six vectors.

    The attention branch is the child of the layer in which a softmax attention happens, or a module inside it where
    the child adds the residual itself; the feed-forward branch is what is left. Sequential and parallel layers,
    norms before or after the branches (inside the residual sum) are all found.

    Raises:
        NotApplicable: for a layer without softmax attention, one that is no identity with both branches cut (norms
            behind the residual sum, a scaled residual), or as ``check_replayable``.
    """
    vectors = pilot_vectors(anatomy.embedding)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    replay = record_layers(anatomy, vectors, mask)
    holders = _holders(anatomy, vectors, mask)
    known: dict[torch.nn.Module, Branches] = {}
    for number, call in enumerate(replay.calls):
        if call.module not in known:
            known[call.module] = _branches(replay, number, holders)
    return tuple(known[call.module] for call in replay.calls)


def _holders(
    anatomy: Anatomy, vectors: Float[torch.Tensor, "1 T fed"], mask: torch.Tensor
) -> dict[torch.nn.Module, list[str]]:
    """The names, inside each layer, of the modules in which attention happens."""
    found: dict[torch.nn.Module, list[str]] = {}
    shape = (vectors.shape[0], vectors.shape[1])

    def see(call: Any) -> None:
        found.setdefault(anatomy.layers[call.layer], []).append(call.module)

    with torch.no_grad(), attention_calls(anatomy, shape, see) as seen:
        anatomy.stream(vectors, mask)
    if seen.without:
        number, mixer = next(iter(seen.without.items()))
        raise NotApplicable(
            f"{type(anatomy.backbone).__name__}: layer {number} has no attention weights to hold fixed ({mixer}); "
            "pathways are those of softmax attention"
        )
    return found


def _branches(replay: Replay, number: int, holders: dict[torch.nn.Module, list[str]]) -> Branches:
    layer = replay.calls[number].module
    names = dict(layer.named_modules())
    finished = _finished(replay, number)
    path = holders[layer][-1].split(".")
    chain = [names[".".join(path[: depth + 1])] for depth in range(len(path))]
    inside = [part for part in finished if part in set(chain[0].modules()) and part not in chain]
    children = [part for part in finished if part in set(layer.children())]
    cotangent = torch.zeros_like(replay.input(number))
    cotangent[:, -1] = torch.linspace(-1, 2, cotangent.shape[-1]).to(cotangent)
    for attention in (*chain, *inside):
        alone = _gradient(replay, number, [attention], cotangent)
        if not _local(alone):
            continue
        if _same(alone, cotangent):
            return Branches(attention, None)
        for rest in children:
            if rest is attention or not _same(_gradient(replay, number, [attention, rest], cotangent), cotangent):
                continue
            if not _local(_gradient(replay, number, [rest], cotangent)):
                return Branches(attention, rest)
    raise NotApplicable(
        f"{type(layer).__name__}: layer {number} is no identity when its attention and feed-forward branches are cut "
        "(a norm behind the residual sum, or a scaled residual), so its Jacobian is not identity plus branches"
    )


def _finished(replay: Replay, number: int) -> list[torch.nn.Module]:
    """The modules inside a layer, the last to finish first."""
    layer = replay.calls[number].module
    with torch.no_grad(), outputs_of([part for part in layer.modules() if part is not layer], _holds_tensor) as seen:
        replay.layer(number, replay.input(number))
    return list(dict.fromkeys(part for part, _ in reversed(seen)))


def _gradient(
    replay: Replay, number: int, modules: list[torch.nn.Module], cotangent: Float[torch.Tensor, "n L d"]
) -> Float[torch.Tensor, "n L d"]:
    def layer(x: torch.Tensor) -> torch.Tensor:
        with cut(modules):
            # 0 * x keeps the graph when the cut removes the residual too
            return replay.layer(number, x) + 0 * x

    return pull_back(layer, replay.input(number), cotangent)


def _local(gradient: Float[torch.Tensor, "n L d"]) -> bool:
    """Whether a gradient that came from the last position stays there."""
    return not bool(gradient[:, :-1].any())


def _same(gradient: Float[torch.Tensor, "n L d"], cotangent: Float[torch.Tensor, "n L d"]) -> bool:
    limit = max(TOLERANCE, torch.finfo(cotangent.dtype).eps)
    return bool((gradient - cotangent).norm() <= limit * cotangent.norm())


def _holds_tensor(output: object) -> bool:
    return isinstance(output, torch.Tensor) or (isinstance(output, tuple) and isinstance(output[0], torch.Tensor))


def _detached(output: object) -> object:
    if isinstance(output, torch.Tensor):
        return output.detach()
    if isinstance(output, tuple | list):
        return type(output)(_detached(part) for part in output)
    return output
