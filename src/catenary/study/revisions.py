"""Published checkpoints of one network: folders inside MODEL, folders of their own, or revisions on the hub."""

from __future__ import annotations

from pathlib import Path

from catenary.errors import InvalidInput, MissingResource
from catenary.study.config import StudyConfig
from catenary.study.course import Course, checkpoints
from catenary.study.parts import Part
from catenary.study.source import Source, find_source, usable_source


def each_revision(config: StudyConfig, course: Course, part: Part) -> dict[int, tuple[StudyConfig, Source]]:
    """By step, the settings that load a checkpoint, and what it is; all are checked before any is measured.

    A name is a folder inside the folder MODEL (``checkpoint-500``), else a folder, else a revision of the hub id MODEL.

    Raises:
        MissingResource: a checkpoint or its tokenizer is not there.
        InvalidInput: names without steps, no weights, or checkpoints of different architectures.
    """
    found: dict[int, tuple[StudyConfig, Source]] = {}
    for step, name in checkpoints(course.revisions).items():
        chosen = _settings(config, name)
        found[step] = (chosen, usable_source(find_source(chosen), chosen, part))
    kinds = [source.architecture for _, source in found.values()]
    for kind, name in zip(kinds, course.revisions, strict=True):
        if (kind.family, kind.width, kind.depth, kind.vocabulary) != (
            kinds[0].family, kinds[0].width, kinds[0].depth, kinds[0].vocabulary
        ):
            raise InvalidInput(f"revisions must be of one architecture; {name} is {kind.describe()}")
    return found


def _settings(config: StudyConfig, name: str) -> StudyConfig:
    model = Path(config.model)
    for folder in (model / name, Path(name)):
        if folder.is_dir():
            has_own = (folder / "tokenizer.json").is_file() or (folder / "tokenizer_config.json").is_file()
            outer = str(model) if model.is_dir() and not has_own else None
            return config.model_copy(update={"model": str(folder), "tokenizer": config.tokenizer or outer})
    if model.is_dir():
        there = ", ".join(sorted(p.name for p in model.iterdir() if p.is_dir())[:8]) or "no folders"
        raise MissingResource(f"no checkpoint {name!r} in {model}: it holds {there}")
    return config.model_copy(update={"revision": name})
