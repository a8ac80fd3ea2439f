"""Where a MODEL's config is: a mapping, a path, a preset or a hub id, in that order."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from catenary.configs.hub import HubUnreachable, fetch_config
from catenary.configs.presets import list_presets, load_preset, preset_of_hub_id
from catenary.configs.received import printable, received
from catenary.configs.strict_json import read_object
from catenary.errors import InvalidInput, MissingResource, invalid


@dataclass(frozen=True)
class Located:
    """A config and where it came from.

    ``source`` says in words what was chosen; ``folder`` holds the weights and tokenizer where there are any;
    ``name`` is a printable title.
    """

    config: Mapping[str, Any]
    kind: Literal["dict", "path", "preset", "hub"]
    source: str
    folder: Path | None
    name: str


def locate_config(model: str | Path | Mapping[str, Any], *, revision: str | None = None) -> Located:
    """Find and parse the config of ``model``.

    A mapping is taken as it is. Text is an existing path (a folder with a config.json, or a JSON file), else a
    preset, else a hub id (local cache first, then the hub; ``HF_HUB_OFFLINE`` is respected). ``preset:`` and
    ``hub:`` in front force one of them. The hub id of a preset's source falls back to the preset when the hub
    cannot be reached, and ``source`` says so. ``revision`` belongs to hub ids.

    Raises:
        MissingResource: nothing of that name, with what was looked for and where.
        InvalidInput: what was found is not a config, or ``revision`` is given for something not on the hub.
    """
    located = _located(model, revision)
    if revision is not None and located.kind != "hub":
        hint = "write hub:owner/name to force a hub id"
        raise invalid("revision", f"applies to hub ids, and model is a {located.kind}", revision[:100], hint)
    return located


def _located(model: object, revision: str | None) -> Located:
    if isinstance(model, Mapping):
        return _mapping(model)
    if isinstance(model, Path):
        return _path(model)
    if isinstance(model, str):
        return _text(model, revision)
    hint = "for a transformers config pass config.to_dict()"
    raise invalid("model", "must be a path, a preset, a hub id or a mapping", received(model), hint)


def _text(model: str, revision: str | None) -> Located:
    if not model.strip() or not model.isprintable():
        raise invalid("model", "must be a path, a preset or a hub id", model[:100])
    prefix, _, rest = model.partition(":")
    if prefix == "preset":
        return _preset(rest)
    if prefix == "hub":
        return _hub(rest, revision)
    path = Path(model).expanduser()
    if _exists(path):
        return _path(path)
    if _only_a_path(model):
        raise MissingResource(f"no file or folder {model!r}; looked in {printable(os.getcwd())!r}")
    if model.lower() in list_presets():
        return _preset(model)
    return _hub_or_preset(model, revision)


def _mapping(config: Mapping[str, Any]) -> Located:
    title = config.get("_name_or_path") or config.get("model_type")
    name = printable(title) if isinstance(title, str) and title else "unnamed"
    return Located(config, "dict", "a mapping given by the caller", None, name)


def _path(path: Path) -> Located:
    if not _exists(path):
        raise MissingResource(f"no file or folder {str(path)!r}; looked in {printable(os.getcwd())!r}")
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        hint = f"; write preset:{path} for the preset" if str(path).lower() in list_presets() else ""
        raise MissingResource(f"no config.json in folder {str(path)!r}; {_inventory(path)}{hint}")
    with_folder = file.name == "config.json"
    name = file.parent.resolve().name if with_folder else file.stem
    config = _prefixed(file)
    return Located(config, "path", printable(str(file), 300), file.parent if with_folder else None, printable(name))


def _preset(name: str) -> Located:
    preset = load_preset(name)
    return Located(preset.config, "preset", f"preset {preset.name} (values of {preset.source})", None, preset.name)


def _hub(repo: str, revision: str | None) -> Located:
    file = fetch_config(repo, revision)
    source = f"hub {repo}, commit {file.parent.name}"
    return Located(_prefixed(file), "hub", source, file.parent, printable(repo))


def _hub_or_preset(repo: str, revision: str | None) -> Located:
    """The hub id, or the preset with its values where the hub cannot be asked; a refusal names the nearest preset."""
    try:
        return _hub(repo, revision)
    except HubUnreachable as error:
        preset = preset_of_hub_id(repo) if revision is None else None
        if preset is None:
            raise HubUnreachable(f"{error}; {_suggestion(repo)}") from None
        source = f"preset {preset.name} (values of {preset.source}), since the hub cannot be reached"
        return Located(preset.config, "preset", source, None, preset.name)
    except MissingResource as error:
        raise MissingResource(f"{error}; {_suggestion(repo)}") from None


def _prefixed(file: Path) -> dict[str, Any]:
    try:
        return read_object(file)
    except InvalidInput as error:
        raise type(error)(f"{printable(str(file), 300)}: {error}") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long for the file system, or a folder without permission
        return False


def _only_a_path(model: str) -> bool:
    return model.startswith((".", "/", "~")) or "\\" in model or model.endswith(".json") or model.count("/") > 1


def _inventory(folder: Path) -> str:
    names = sorted(entry.name for entry in folder.iterdir())
    if not names:
        return "it is empty"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"it holds {', '.join(printable(name, 40) for name in names[:8])}{more}"


def _suggestion(model: str) -> str:
    tail = model.rsplit("/", 1)[-1].lower()[:100]
    near = difflib.get_close_matches(tail, list_presets(), n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return f"no file, folder or preset has that name either{guess}; presets: {', '.join(list_presets())}"
