"""Whether the fused attention kernel and the plain one give one profile, and whether attention maps can be read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject, apart
from catenary.errors import NotApplicable
from catenary.measure.feed import prepare
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.stream import inputs_of, run
from catenary.models.twin import twin
from catenary.models.undisturbed import undisturbed

SAME_PROFILE = 1e-5
"""Of norms in float32, relative to the window's largest."""
SAME_MAP = 1e-6
"""Of attention weights in float32, absolute: a few roundings of a number up to 1."""


def _check_profile(subject: Subject) -> Check:
    model = subject.exact
    other = "eager" if model.attention == "sdpa" else "sdpa"
    change = apart(subject.few(twin(model, attention=other)), subject.exact_norms)
    said = f"norms under {other} and {model.attention} differ by at most {change:.1g} (of the largest, float32)"
    said += "" if change <= SAME_PROFILE else ". Give --attention eager, which is the reference"
    return judge(PROFILE, change <= SAME_PROFILE, said, change=change, used=model.attention, other=other)


def _check_maps(subject: Subject) -> Check:
    model = subject.exact
    maps, streams = _caught(model, subject)
    reported = _reported(twin(model, attention="eager"), subject, streams)
    if len(maps) != len(reported):
        raise NotApplicable(f"transformers reports {len(reported)} maps where {len(maps)} attentions are run")
    change = max(float((ours - theirs).abs().max()) for ours, theirs in zip(maps, reported, strict=True))
    close = "bit for bit" if change == 0 else f"to {change:.1g}"
    said = f"{len(maps)} maps read under {model.attention} equal those that an eager twin reports, {close}"
    said += "" if change <= SAME_MAP else ". Give --attention eager to read maps"
    return judge(MAPS, change <= SAME_MAP, said, change=change, maps=len(maps), used=model.attention)


def _caught(model: Model, subject: Subject) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Every map of the first window as it happens, and the stream that enters each layer."""
    feed = prepare(model, subject.first_windows(1))
    vectors, mask = feed.vectors([0]), feed.mask([0])
    maps: list[torch.Tensor] = []
    with ExitStack() as stack:
        stack.enter_context(undisturbed(model.module))
        stack.enter_context(torch.no_grad())
        entered = [stack.enter_context(inputs_of(layer)) for layer in model.anatomy.layers]
        stack.enter_context(
            attention_calls(
                model.anatomy, (1, feed.length), lambda call: maps.append(call.rows(0, feed.length).cpu())
            )
        )
        run(model.anatomy.backbone, vectors, mask)
    if not maps:
        raise NotApplicable("no layer of this network has a softmax attention")
    return maps, [seen[0] for seen in entered if seen]


def _reported(model: Model, subject: Subject, streams: list[torch.Tensor]) -> list[torch.Tensor]:
    """What transformers' own ``output_attentions`` gives when each layer is fed ``streams``.

    So maps differ by what one layer rounds, not by what all layers before it have.
    """
    feed = prepare(model, subject.first_windows(1))
    with ExitStack() as stack:
        stack.enter_context(undisturbed(model.module))
        stack.enter_context(torch.no_grad())
        if len(streams) == len(model.anatomy.layers):
            for layer, stream in zip(model.anatomy.layers, streams, strict=True):
                stack.callback(layer.register_forward_pre_hook(_feeding(stream), with_kwargs=True).remove)
        output: Any = model.anatomy.backbone(
            inputs_embeds=feed.vectors([0]), attention_mask=feed.mask([0]), output_attentions=True, use_cache=False
        )
    return [part.cpu() for part in getattr(output, "attentions", None) or () if part is not None]


def _feeding(stream: torch.Tensor) -> Callable[..., Any]:
    """A hook that puts ``stream`` in place of a layer's first argument."""

    def feed(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if arguments:
            return (stream, *arguments[1:]), named
        return arguments, {**named, next(iter(named)): stream}

    return feed


PROFILE = "attention"
ATTENTION = Control(PROFILE, "Fused (sdpa) and plain (eager) attention give the same profile.", _check_profile, few=1)
MAPS = "attention maps"
ATTENTION_MAPS = Control(MAPS, "Attention weights can be read under the implementation in use.", _check_maps, few=1)
