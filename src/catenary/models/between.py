"""The stream between two layers: put a leaf in front of one, or stop the network at another.

Layers are counted as they are called; the stream at l is what enters layer l, and at the depth what leaves the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy
from catenary.models.extra import torch
from catenary.models.stream import first_tensor


@contextmanager
def leaf_at(anatomy: Anatomy, layer: int) -> Iterator[list[Float[torch.Tensor, "n L d"]]]:
    """Replace the stream that enters ``layer`` by a leaf of the same values, which the list holds after a run.

    What a layer gets beside the stream (masks, positions, another layer's keys) stays as it is, a constant.
    """
    leaves: list[torch.Tensor] = []
    count = [0]

    def put(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        count[0] += 1
        if count[0] - 1 != layer:
            return None
        name = None if arguments else next(iter(named))
        leaf = (arguments[0] if name is None else named[name]).detach().requires_grad_(True)
        leaves.append(leaf)
        fed = leaf.clone()  # some types write into their input
        return ((fed, *arguments[1:]), named) if name is None else ((), {**named, name: fed})

    handles = [part.register_forward_pre_hook(put, with_kwargs=True) for part in set(anatomy.layers)]
    try:
        yield leaves
    finally:
        for handle in handles:
            handle.remove()


def stop_at(anatomy: Anatomy, layer: int, forward: Callable[[], object]) -> Float[torch.Tensor, "n L d"]:
    """Run ``forward`` until the stream that enters ``layer`` is there, and return it.

    Raises:
        NotApplicable: when the network has fewer layer calls.
    """
    count = [0]
    depth = len(anatomy.layers)

    def before(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if count[0] == layer:
            raise _Reached(arguments[0] if arguments else next(iter(named.values())))
        count[0] += 1

    def after(_: torch.nn.Module, __: object, output: object) -> None:
        if layer == depth == count[0]:
            raise _Reached(first_tensor(output))

    handles: list[Any] = [part.register_forward_pre_hook(before, with_kwargs=True) for part in set(anatomy.layers)]
    handles += [part.register_forward_hook(after) for part in set(anatomy.layers)]
    try:
        forward()
    except _Reached as reached:
        return reached.stream
    finally:
        for handle in handles:
            handle.remove()
    raise NotApplicable(f"{type(anatomy.backbone).__name__} makes {count[0]} layer calls and never reaches {layer}")


class _Reached(Exception):
    def __init__(self, stream: torch.Tensor) -> None:
        self.stream = stream
