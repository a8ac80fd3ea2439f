"""From a MODEL argument to an Architecture: find the config, pick the family, read, keep what was assumed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.class_facts import ClassFacts, class_facts
from catenary.configs.family import FAMILIES
from catenary.configs.fields import Fields
from catenary.configs.locate import locate_config
from catenary.configs.received import received
from catenary.configs.refusals import REFUSALS
from catenary.configs.standing import standing, standing_words
from catenary.errors import InvalidInput, NotApplicable, invalid

QUANTISED = ("quantization_config", "quantization", "quip_params")
"""Keys under which published configs say that the weights are quantised."""


STD_FIELDS = ("initializer_range", "init_std", "initializer_factor")
"""Where config classes keep the std of the initial weights, in the order in which transformers looks."""


def read_config(
    model: str | Path | Mapping[str, Any], *, init_std: float | None = None, revision: str | None = None
) -> Architecture:
    """What the config of ``model`` says about routing at birth.

    ``model`` is an existing path (a folder with a config.json, or a JSON file), a preset, a hub id, or a mapping;
    ``preset:`` and ``hub:`` in front force one. ``init_std`` takes the place of the config's ``initializer_range``
    before the family reads it, so that every std derived from it follows (GPT-2's scaled outputs). ``revision``
    belongs to hub ids. Neither torch nor transformers is imported.

    Example:
        >>> architecture = read_config("qwen2-0.5b")
        >>> architecture.width, architecture.depth, architecture.vocabulary
        (896, 24, 151936)

    Raises:
        MissingResource: nothing of that name was found.
        NotApplicable: the family, or one of its variants, is not described; the message names it.
        InvalidInput: the config is not one, or a field is missing, of the wrong type or out of range.
    """
    std = None if init_std is None else _checked_std(init_std)
    located = locate_config(model, revision=revision)
    try:
        architecture = _read(located.config, std)
    except InvalidInput as error:
        if located.kind == "dict":
            raise
        raise type(error)(f"{located.source}: {error}") from None
    return replace(architecture, name=located.name, source=located.source)


def open_fields(config: Mapping[str, Any]) -> Fields:
    """The fields of the text part of ``config``, nothing read yet.

    Raises:
        InvalidInput, NotApplicable: no family reads this config; the message says why.
    """
    model_type, part = text_part(config)
    return Fields(part, model_type, _facts(model_type), sparse=part is not config)


def _facts(model_type: str) -> ClassFacts:
    known = class_facts(model_type)
    return ClassFacts({**known.defaults, **FAMILIES[model_type].defaults}, known.names, known.theta)


def _read(config: Mapping[str, Any], std: float | None) -> Architecture:
    model_type, part = text_part(config)
    family, facts = FAMILIES[model_type], _facts(model_type)
    std_field = next((name for name in STD_FIELDS if name in facts.defaults), STD_FIELDS[0])
    chosen = part if std is None else {**part, std_field: std}
    fields = Fields(chosen, model_type, facts, sparse=part is not config)
    if fields.has("is_causal") and not fields.boolean("is_causal"):
        raise NotApplicable(f"{model_type} with is_causal=false attends in both directions; only causal models here")
    if part is not config:
        fields.note(f"only the text part of a {received(config.get('model_type'))} model is described")
    for key in QUANTISED:
        if config.get(key) or part.get(key):
            fields.note(f"{key}: quantised weights keep the shape; their rounding is not described")
    if config.get("auto_map"):
        fields.note(f"auto_map names the model's own code; transformers' own {model_type} class is described")
    found = standing(model_type)
    if found.kind == "approximate":
        fields.note(f"approximate: {found.reason}")
    architecture = family.read(fields)
    if std is not None:
        instead = received(part.get(std_field, "class default"))
        stated = f"{architecture.initialisation}; std {std:.6g} given as init_std, in place of {instead}"
        architecture = replace(architecture, initialisation=stated)
    return replace(
        architecture, assumed=fields.assumed, not_expressed=fields.notes, standing=standing_words(model_type)
    )


def text_part(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The model type and the object that describes the text decoder: the config itself, or its ``text_config``."""
    model_type = config.get("model_type")
    if model_type is None:
        raise InvalidInput(f"model_type is missing, so the family is unknown; {_guess(config)}")
    if not isinstance(model_type, str) or len(model_type) > 100:
        raise invalid("model_type", "must be the name of a model family", received(model_type))
    if model_type in FAMILIES:
        return model_type, config
    if model_type in REFUSALS:
        raise NotApplicable(f"{model_type} is not described: {REFUSALS[model_type]}")
    text = config.get("text_config")
    if isinstance(text, Mapping):
        inner = text.get("model_type", class_facts(model_type).text)
        if isinstance(inner, str) and inner in FAMILIES:
            return inner, text
        if isinstance(inner, str) and inner in REFUSALS:
            raise NotApplicable(f"{inner}, the text part of {model_type}, is not described: {REFUSALS[inner]}")
    if class_facts(model_type).text is not None:
        raise NotApplicable(f"text_config is missing; {model_type} wraps a text decoder and keeps its fields there")
    near = difflib.get_close_matches(model_type, [*FAMILIES, *REFUSALS], n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise NotApplicable(
        f"unknown model_type {model_type!a}, none of those described.{guess} A model with its own code "
        "can be read as the family whose class it copies: change model_type in a copy of the config"
    )


def _guess(config: Mapping[str, Any]) -> str:
    names = config.get("architectures")
    first = names[0].lower()[:100] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    known = [kind for kind in FAMILIES if first.startswith(kind.replace("_", "").replace("-", ""))]
    if known:
        why, guess = f"architectures {received(first)!r} suggests", max(known, key=len)
    elif "n_embd" in config and "n_layer" in config:
        why, guess = "n_embd and n_layer look like", "gpt2"
    else:
        return "add the name of its family (llama, gpt2, ...) to a copy of the config"
    return f'{why} {guess}: add "model_type": "{guess}" to a copy of the config'


def _checked_std(std: float) -> float:
    value = Fields({"init_std": std}, "read_config").number("init_std", most=limits.STD)
    if value == 0:
        raise invalid("init_std", f"must be in (0, {limits.STD:g}]", value, "a network of zeros has no profile")
    return value
