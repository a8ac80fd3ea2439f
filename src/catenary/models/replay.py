"""Run one layer of a decoder alone, with every other argument as it was in a forward pass.

A pass is kept as the streams between the layers. Pulling a cotangent back layer by layer then needs the graph of
one layer at a time, and equals the vjp of the whole network when nothing but the stream carries the embeddings from
layer to layer. That is checked on six vectors before anything is recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Float, Int

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.extra import torch
from catenary.models.stream import first_tensor, run

Stream = Float[torch.Tensor, "n L _"]
"""The width may change on the way in and out of the layers."""

@dataclass(frozen=True, eq=False)
class LayerCall:
    """One call of one layer: its stream input and its other arguments, detached; ``named`` says how it was passed."""

    module: torch.nn.Module
    stream: Float[torch.Tensor, "*dims"]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    named: str | None = None

    def again(self, x: Stream) -> Stream:
        """The layer's stream output for the stream ``x`` in place of its own."""
        x = x.clone()  # some types write into their input
        if self.named is None:
            return first_tensor(self.module(x, *self.arguments, **self.options))
        return first_tensor(self.module(*self.arguments, **{self.named: x, **self.options}))


@dataclass(frozen=True, eq=False)
class Replay:
    """A forward pass as its layer calls, in order, and the stream in front of the final norm.

    Use it inside ``undisturbed(module)``, as ``record_layers``: with dropout off and weights frozen. A layer that the
    network runs twice has two calls. Nothing is moved or cast.
    """

    anatomy: Anatomy
    calls: tuple[LayerCall, ...]
    stream: Stream
    vectors: Float[torch.Tensor, "n L fed"]
    mask: Int[torch.Tensor, "n L"]
    positions: Int[torch.Tensor, "n L"] | None
    last: Stream

    @property
    def depth(self) -> int:
        """Number of layer calls."""
        return len(self.calls)

    def input(self, layer: int) -> Stream:
        """The stream that entered a layer, detached; at ``depth`` the one that left the last layer."""
        return self.last if layer == self.depth else self.calls[layer].stream

    def layer(self, layer: int, x: Stream) -> Stream:
        """The stream output of one layer run alone on ``x``, (n, L, d), with its other arguments as in the pass."""
        return self.calls[layer].again(x)

    def entry(self, vectors: Float[torch.Tensor, "n L fed"]) -> Stream:
        """The stream that enters the first layer for these vectors: learned positions, an embedding norm, a scale."""
        def stop(stream: Stream) -> None:
            raise _Reached(stream)

        with before_layers(self.anatomy, lambda call: stop(call.stream)):
            try:
                run(self.anatomy.backbone, vectors.clone(), self.mask, self.positions)
            except _Reached as reached:
                return reached.stream
        raise AssertionError("no layer was run")

    @property
    def exits_plainly(self) -> bool:
        """Whether the last layer's output is the stream in front of the final norm."""
        return self.last.shape == self.stream.shape and agree(self.last, self.stream)

    def exit(self, x: Stream) -> Stream:
        """The stream in front of the final norm for ``x`` in place of the last layer's output.

        Where something stands between them (a projection, a norm) the network is run again from there.
        """
        if self.exits_plainly:
            return x
        count = [0]

        def put(_: torch.nn.Module, __: object, output: object) -> object:
            count[0] += 1
            return _with_first(output, x) if count[0] == self.depth else output

        handles = [part.register_forward_hook(put) for part in set(self.anatomy.layers)]
        try:
            return self.anatomy.stream(self.vectors.detach().clone(), self.mask, self.positions)
        finally:
            for handle in handles:
                handle.remove()


def record_layers(
    anatomy: Anatomy,
    vectors: Float[torch.Tensor, "n L fed"],
    mask: Int[torch.Tensor, "n L"],
    positions: Int[torch.Tensor, "n L"] | None = None,
    *,
    check: bool = True,
) -> Replay:
    """One forward pass without a graph, kept as the input of every layer; memory depth * n * L * d beside one layer.

    Args:
        anatomy: of the network, from ``dissect``.
        vectors: embedded tokens (n, L, fed), as ``Anatomy.stream`` takes them.
        mask: ones on real tokens.
        positions: position ids, or the network's own count.
        check: run ``check_replayable`` first; leave it out only after it passed for this network.

    Raises:
        NotApplicable: where the input of a layer is not the output of the one before, or as ``check_replayable``.
    """
    if check:
        check_replayable(anatomy)
    with torch.no_grad():
        return _record(anatomy, vectors, mask, positions)


def check_replayable(anatomy: Anatomy) -> None:
    """Refuse a network whose layers get the embeddings by another way than the stream.

    A pilot run with a graph shows whether another argument of a layer depends on the embeddings (per-layer inputs,
    the original embedding, values of an earlier layer); replayed layer by layer, it must give the same streams and
    the same gradient as the whole network, which also shows ways outside the arguments (a shared cache).

    Raises:
        NotApplicable: naming the layer and the argument.
    """
    kind = type(anatomy.backbone).__name__
    leaf = pilot_vectors(anatomy.embedding).requires_grad_(True)
    mask = torch.ones(leaf.shape[:2], dtype=torch.long, device=leaf.device)
    replay = _record(anatomy, leaf, mask, None)
    cotangent = torch.zeros_like(replay.stream)
    cotangent[:, -1] = torch.linspace(-1, 2, cotangent.shape[-1]).to(cotangent)
    whole = pull_back(lambda e: anatomy.stream(e.clone(), mask), leaf, cotangent)
    moving = pull_back(replay.exit, replay.last, cotangent)
    for layer in reversed(range(replay.depth)):
        x = replay.input(layer)
        if not agree(replay.layer(layer, x), replay.input(layer + 1)):
            raise NotApplicable(f"{kind}: layer {layer} run again on its own input gives another output")
        moving = pull_back(partial(replay.layer, layer), x, moving)
    if not agree(pull_back(replay.entry, leaf, moving), whole):
        raise NotApplicable(
            f"{kind}: pulled back layer by layer the gradient is another than that of the whole network, so the "
            "layers share more than the stream (keys, values or a state)"
        )


def pull_back(function: Callable[[Stream], Stream], x: Stream, cotangent: Stream) -> Stream:
    """The vjp of ``function`` at ``x``, J^T cotangent; its graph is dropped on return."""
    leaf = x.detach().requires_grad_(True)
    (gradient,) = torch.autograd.grad(function(leaf), leaf, cotangent)
    return gradient


def _record(
    anatomy: Anatomy,
    vectors: Float[torch.Tensor, "n L fed"],
    mask: Int[torch.Tensor, "n L"],
    positions: Int[torch.Tensor, "n L"] | None,
) -> Replay:
    kind = type(anatomy.backbone).__name__
    calls: list[LayerCall] = []
    outputs: list[torch.Tensor] = []

    def before(call: LayerCall) -> None:
        number = len(calls)
        if outputs and not agree(call.stream, outputs[-1]):
            raise NotApplicable(
                f"{kind}: the input of layer {number} is not the output of layer {number - 1}, so layers can't be "
                "taken one at a time"
            )
        _check_arguments(kind, number, call)
        arguments, options = _map(lambda x: x.detach(), (call.arguments, call.options))
        # cloned, because some types write into their input
        calls.append(LayerCall(call.module, call.stream.detach().clone(), arguments, options, call.named))

    def after(_: torch.nn.Module, __: object, output: object) -> None:
        outputs[:] = [first_tensor(output)]

    handles = [part.register_forward_hook(after) for part in set(anatomy.layers)]
    try:
        with before_layers(anatomy, before):
            stream = anatomy.stream(vectors.clone(), mask, positions)
    finally:
        for handle in handles:
            handle.remove()
    return Replay(anatomy, tuple(calls), stream.detach(), vectors, mask, positions, outputs[0].detach())


def _check_arguments(kind: str, number: int, call: LayerCall) -> None:
    names = list(inspect.signature(type(call.module).forward).parameters)[2:]  # without self and the stream
    for name, value in [*zip(names, call.arguments, strict=False), *call.options.items()]:
        if any(part.requires_grad for part in _tensors(value)):
            raise NotApplicable(
                f"{kind}: {name} of layer {number} depends on the embeddings beside the stream, so a vjp layer by "
                "layer would miss a path"
            )


@contextmanager
def before_layers(anatomy: Anatomy, see: Callable[[LayerCall], None]) -> Iterator[None]:
    """Call ``see`` with every layer call about to be made."""
    def hook(module: torch.nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if arguments:
            see(LayerCall(module, arguments[0], arguments[1:], options))
        else:
            name, stream = next(iter(options.items()))
            see(LayerCall(module, stream, (), {k: v for k, v in options.items() if k != name}, name))

    handles = [part.register_forward_pre_hook(hook, with_kwargs=True) for part in set(anatomy.layers)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Reached(Exception):
    def __init__(self, stream: torch.Tensor) -> None:
        self.stream = stream


def _map(function: Callable[[torch.Tensor], object], value: Any) -> Any:
    """``value`` with every tensor in its tuples, lists and dicts replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {name: _map(function, part) for name, part in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_map(function, part) for part in value)
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    _map(found.append, value)
    return found


def _with_first(output: object, x: torch.Tensor) -> object:
    """What a layer returned, with its stream replaced."""
    if isinstance(output, tuple | list):
        return type(output)([_with_first(output[0], x), *output[1:]])
    return x


def agree(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal to half the digits of their type: the same operations run twice, on some devices in another order."""
    if a.shape != b.shape:
        return False
    epsilon = torch.finfo(a.dtype).eps
    a, b = (part.detach().cpu().double() for part in (a, b))
    return bool((a - b).norm() <= epsilon**0.5 * b.norm())
