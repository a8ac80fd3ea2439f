"""A twin: the same weights in another dtype, under another attention implementation, or without rotary positions."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from catenary.errors import NotApplicable
from catenary.models.anatomy import dissect
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.rope import switch_rotary_off


def twin(model: Model, *, dtype: torch.dtype | None = None, attention: str | None = None, rope: bool = True) -> Model:
    """A network of its own with the weights of ``model``, which is left alone.

    Parameters are shared where nothing about them changes; buffers and the config are copied. Hooks come along.

    Args:
        model: as ``load`` or ``adopt`` gives it.
        dtype: of the twin's parameters; None keeps them.
        attention: ``sdpa`` or ``eager``; None keeps what is in use.
        rope: False switches rotary positions off in the twin.

    Raises:
        NotApplicable: quantised weights in another dtype, an implementation that the type refuses, or no rotary
            frequencies to switch off.
    """
    shared: dict[int, Any] = {}
    for parameter in model.module.parameters():
        shared[id(parameter)] = parameter
        if dtype is None or parameter.dtype == dtype:
            continue
        if not parameter.is_floating_point():
            raise NotApplicable(f"the weights of {model.name!r} are {parameter.dtype}: quantised, with no other dtype")
        cast = torch.nn.Parameter(parameter.detach().to(dtype), requires_grad=parameter.requires_grad)
        shared[id(parameter)] = cast
    module = copy.deepcopy(model.module, shared)
    if attention is not None and attention != model.attention:
        _switch_attention(module, attention)
    anatomy = dissect(module)
    if not rope:
        switch_rotary_off(module, anatomy)
    return replace(model, module=module, anatomy=anatomy, rope=model.rope and rope)


def _switch_attention(module: torch.nn.Module, attention: str) -> None:
    """Raises ``NotApplicable`` with transformers' own words where the type does not have the implementation."""
    switch: Any = getattr(module, "set_attn_implementation", None)
    if switch is None:
        raise NotApplicable(f"{type(module).__name__} has no choice of attention implementation")
    try:
        switch(attention)
    except (ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:160]
        raise NotApplicable(f"{type(module).__name__} does not run under {attention}: {reason}") from error
    config: Any = module.config
    if config._attn_implementation != attention:
        now = config._attn_implementation
        raise NotApplicable(f"{type(module).__name__} stays with {now} when asked for {attention}")
