"""What each branch of a layer adds to the residual stream, found by arithmetic: which tensor is added to which.

Every tensor operation of a layer is followed. A sum of the stream and something else is a residual step: what is added
is attention where it was computed from an attention's values, else feed-forward, and the sum is the new stream. Norms
and factors around a branch, and factors of the stream, are thereby as the network has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch.utils._python_dispatch import TorchDispatchMode

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy
from catenary.models.attention_call import AttentionCall, GivenCall
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.stream import first_tensor
from catenary.strengths import BRANCHES, Branch

aten = torch.ops.aten
SUMS = frozenset({aten.add.Tensor, aten.add_.Tensor})
COPIES = frozenset({aten._to_copy.default, aten.clone.default, aten.contiguous.default})
PRODUCTS = frozenset({aten.mul.Tensor, aten.mul_.Tensor, aten.mul.Scalar})
NORMS = frozenset({aten.native_layer_norm.default})

Sizes = Float[torch.Tensor, "n L"]


@dataclass(frozen=True, eq=False)
class Addition:
    """One branch of one layer: per token, the rms of the stream it is added to (what is kept of it), and its own.

    ``layer`` counts the layers that ran, from 0. What is not attention is called feed-forward.
    """

    layer: int
    branch: Branch
    stream: Sizes
    added: Sizes


@contextmanager
def additions(anatomy: Anatomy, shape: tuple[int, int], receive: Callable[[Addition], None]) -> Iterator[set[int]]:
    """Hand every branch of the layers run inside the context to ``receive``, in order; yields the layers left out.

    Run the network without gradients, with dropout off. A layer without softmax attention is left out whole. Branches
    of one step (parallel ones) are measured against the same stream, whatever the order of their sum.

    Args:
        anatomy: of the network that is run.
        shape: (sequences n, tokens L) of what it is fed.
        receive: called for every branch when its layer is done.

    Raises:
        NotApplicable: while running, for a layer whose output is not the stream plus branches (or a norm of it), or
            whose attention is not added to the stream; on leaving, as ``attention_calls``.
    """
    trace = _Trace(shape, receive)
    handles = [
        handle
        for layer in anatomy.layers
        for handle in (
            layer.register_forward_pre_hook(trace.enter, with_kwargs=True),
            layer.register_forward_hook(trace.leave),
            *(part.register_forward_hook(trace.normalise) for part in layer.modules() if _like_a_norm(part)),
        )
    ]
    try:
        with trace, attention_calls(anatomy, shape, trace.attend):
            yield trace.left_out
    finally:
        for handle in handles:
            handle.remove()


@dataclass(eq=False)
class _Stream:
    """A stream tensor: what was kept where its step began, and whether anything but a sum has read it."""

    kept: Sizes | None = None
    read: bool = False


@dataclass(eq=False)
class _State:
    """What is known of the tensors of one layer, by their storage; ``held`` keeps storages from being used again."""

    layer: int
    entry: torch.Tensor
    streams: dict[int, _Stream] = field(default_factory=dict)
    attended: set[int] = field(default_factory=set)
    split: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    held: list[torch.Tensor] = field(default_factory=list)
    found: list[Addition] = field(default_factory=list)
    calls: int = 0


class _Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate __init_subclass__
    """Follows the operations of the layer that runs."""

    def __init__(self, shape: tuple[int, int], receive: Callable[[Addition], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # nor its __init__
        self.shape = shape
        self.receive = receive
        self.left_out: set[int] = set()
        self.calls = 0
        self.state: _State | None = None

    def enter(self, _: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A layer begins."""
        entry = first_tensor(arguments[0] if arguments else next(iter(named.values())))
        self.state = _State(self.calls, entry, {_key(entry): _Stream()}, held=[entry])
        self.calls += 1

    def leave(self, layer: torch.nn.Module, _: object, output: object) -> None:
        """A layer is done: hand over what it added."""
        state, self.state = self.state, None
        assert state is not None
        if state.calls == 0:
            self.left_out.add(state.layer)
            return
        branches = [addition.branch for addition in state.found]
        if _key(first_tensor(output)) not in state.streams or "attention" not in branches:
            raise NotApplicable(
                f"{type(layer).__name__}: layer {state.layer} is not its stream plus branches, so that nothing says "
                f"what attention adds to the stream (found: {', '.join(branches) or 'no sum with the stream'})"
            )
        for addition in state.found:
            self.receive(addition)

    def normalise(self, _: torch.nn.Module, arguments: tuple[Any, ...], output: object) -> None:
        """A norm of the stream may stand for the stream in the next sum."""
        if self.state is not None and arguments and isinstance(output, torch.Tensor):
            self._carry(arguments[0], output)

    def attend(self, call: AttentionCall) -> None:
        """What is computed from an attention's weights or values from here on is attention."""
        if self.state is not None:
            used = call.weights if isinstance(call, GivenCall) else call.value
            assert used is not None
            self.state.calls += 1
            self.state.attended.add(_key(used))
            self.state.held.append(used)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation, and note what its result is."""
        named = kwargs or {}
        if self.state is None:
            return func(*args, **named)
        if func in SUMS and self._whole(args):
            return self._sum(self.state, func, args, named)
        output = func(*args, **named)
        self._follow(self.state, func, args, output)
        return output

    def _sum(self, state: _State, func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> torch.Tensor:
        left, right = args[:2]
        factor = float(named.get("alpha", 1))
        if (_key(left) in state.streams) == (_key(right) in state.streams):
            return self._sum_of_branches(state, func, args, named)
        of_left = _key(left) in state.streams
        stream, added, weight, scale = (left, right, 1.0, factor) if of_left else (right, left, factor, 1.0)
        known = state.streams[_key(stream)]
        kept = known.kept if known.kept is not None and not known.read else weight * self._rms(stream)
        for branch, part in zip(BRANCHES, _split(state, added, scale), strict=True):
            if bool(part.any()):
                state.found.append(Addition(state.layer, branch, kept, self._rms(part)))
        output: torch.Tensor = func(*args, **named)
        _forget(state, output)
        state.streams[_key(output)] = _Stream(kept)
        state.held.append(output)
        return output

    def _sum_of_branches(
        self, state: _State, func: Any, args: tuple[Any, ...], named: dict[str, Any]
    ) -> torch.Tensor:
        """A sum without the stream: of attention and feed-forward it is taken apart again when the stream joins."""
        keys = {_key(part) for part in args[:2]}
        mixed = bool(keys & set(state.split)) or len({key in state.attended for key in keys}) > 1
        attended = bool(keys & state.attended)
        left, right = _split(state, args[0], 1.0), _split(state, args[1], float(named.get("alpha", 1)))
        output: torch.Tensor = func(*args, **named)
        _forget(state, output)
        state.held.append(output)
        if mixed:
            state.split[_key(output)] = (left[0] + right[0], left[1] + right[1])
        if attended:
            state.attended.add(_key(output))
        return output

    def _follow(self, state: _State, func: Any, args: tuple[Any, ...], output: object) -> None:
        inputs = [part for part in _tensors(args) if part.device.type != "meta"]
        keys = {_key(part) for part in inputs}
        results = [part for part in _tensors(output) if _key(part) not in keys or func in PRODUCTS]
        # A view reads nothing, and a copy or a factor of the stream is the stream.
        if func in PRODUCTS and results and (scaled := _scaled(args)) is not None:
            self._carry(scaled[0], results[0], scaled[1])
        elif (func in COPIES or func in NORMS) and results and inputs:
            self._carry(inputs[0], results[0])
        elif results:
            for key in keys & set(state.streams):
                state.streams[key].read = True
        if keys & state.attended:
            for part in results:
                state.attended.add(_key(part))
        state.held.extend(results)

    def _carry(self, source: torch.Tensor, result: torch.Tensor, factor: Any = None) -> None:
        """``result`` stands for the stream, or the sum of branches, that ``source`` is."""
        state = self.state
        assert state is not None
        key, target = _key(source), _key(result)
        if key in state.streams and self._is_stream(result):
            if target != key:
                state.streams[key].read = True
                state.streams[target] = _Stream()
            elif factor is not None:
                state.streams[key] = _Stream()
        if key in state.split and factor is not None:
            attention, rest = state.split[key]
            state.split[target] = attention * factor, rest * factor
        elif key in state.split:
            state.split[target] = state.split[key]
        state.held.append(result)

    def _is_stream(self, part: torch.Tensor) -> bool:
        """Whether ``part`` has the stream's tokens and channels, with sequences and tokens on one axis or two."""
        assert self.state is not None
        entry = self.state.entry
        return part.ndim >= 2 and part.shape[-1] == entry.shape[-1] and part.numel() == entry.numel()

    def _whole(self, args: tuple[Any, ...]) -> bool:
        """Whether both terms of a sum have the stream's shape."""
        terms = args[:2]
        return all(isinstance(part, torch.Tensor) and self._is_stream(part) for part in terms) and (
            terms[0].shape == terms[1].shape
        )

    def _rms(self, part: torch.Tensor) -> Sizes:
        squares: torch.Tensor = part.float().pow(2).mean(dim=-1)
        return squares.sqrt().reshape(self.shape)


def _split(state: _State, part: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention in ``part`` and the rest, copied: later operations may overwrite it."""
    if _key(part) in state.split:
        attention, rest = state.split[_key(part)]
        return factor * attention, factor * rest
    nothing = torch.zeros_like(part)
    whole = factor * part
    return (whole, nothing) if _key(part) in state.attended else (nothing, whole)


def _forget(state: _State, output: torch.Tensor) -> None:
    """A sum written into one of its terms takes the term's place."""
    state.attended.discard(_key(output))
    state.split.pop(_key(output), None)
    state.streams.pop(_key(output), None)


def _key(part: torch.Tensor) -> int:
    return int(part.untyped_storage().data_ptr())


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)


def _scaled(args: tuple[Any, ...]) -> tuple[torch.Tensor, Any] | None:
    """Tensor and factor of a product with one number, or with one per channel; None for another product."""
    for part, factor in (args, args[::-1]):
        if not isinstance(part, torch.Tensor) or part.ndim < 2:
            continue
        if not isinstance(factor, torch.Tensor) or factor.numel() == 1 or factor.shape == part.shape[-1:]:
            return part, factor
    return None


def _like_a_norm(part: torch.nn.Module) -> bool:
    """A module without children and with vectors for weights, if any: norms, and what changes nothing."""
    return not any(part.children()) and all(weight.ndim <= 1 for weight in part.parameters())
