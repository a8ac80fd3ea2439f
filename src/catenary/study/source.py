"""Source: what MODEL turned out to be: its config, its architecture, its weights and its tokenizer, if any."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from catenary.architecture import Architecture
from catenary.configs.locate import Located, locate_config
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, MissingResource
from catenary.models.weights import weights_folder
from catenary.provenance import digest
from catenary.study.config import StudyConfig
from catenary.study.parts import TEXT, Part

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")


@dataclass(frozen=True)
class Source:
    """A located model. ``weights`` and ``tokenizer`` are folders, or None with the reason in ``no_...``."""

    located: Located
    architecture: Architecture
    weights: Path | None
    no_weights: str
    tokenizer: Path | None
    no_tokenizer: str

    @property
    def config_digest(self) -> str:
        """Digest of the config alone: identifies an untrained network together with its seed."""
        return digest(dict(self.located.config))

    @cached_property
    def weights_digest(self) -> str:
        """SHA-256 over the names and bytes of the safetensors files: identifies the trained network."""
        assert self.weights is not None
        total = hashlib.sha256()
        for path in sorted(self.weights.glob("*.safetensors")):
            total.update(path.name.encode())
            with path.open("rb") as data:
                total.update(hashlib.file_digest(data, "sha256").digest())
        return total.hexdigest()[:16]


def find_source(config: StudyConfig) -> Source:
    """Locate MODEL and read its config; of a hub id nothing but the config is downloaded."""
    located = locate_config(config.model, revision=config.revision)
    if located.kind == "preset" and "/" in config.model:
        raise MissingResource(
            f"model {config.model!r} cannot be reached on the hub: to measure it, get online or give its folder; "
            f"`catenary predict {config.model}` and `catenary profile preset:{located.name}` need no hub"
        )
    architecture = read_config(config.model, init_std=config.init_std, revision=config.revision)
    source = Source(located, architecture, located.folder, "", located.folder, "")
    if located.kind == "hub":
        return source
    return _checked(source, located.folder, config)


def with_files(source: Source, config: StudyConfig) -> Source:
    """The source with its weights and tokenizer on disk: downloads them where MODEL is a hub id.

    Raises:
        MissingResource: the hub does not give them; the message says why.
    """
    if source.located.kind != "hub":
        return source
    folder, _ = weights_folder(
        source.located.name, revision=config.revision, trust_remote_code=config.trust_remote_code
    )
    return _checked(source, folder, config)


def usable_source(source: Source, config: StudyConfig, part: Part) -> Source:
    """The source with what a part needs on disk; raises ``InvalidInput`` with the reason where it has no such thing."""
    if TEXT & set(part.tokens) or part.weights == "pretrained":
        source = with_files(source, config)
    if part.weights == "pretrained" and source.weights is None:
        raise InvalidInput(source.no_weights)
    if TEXT & set(part.tokens) and source.tokenizer is None:
        raise InvalidInput(source.no_tokenizer)
    return source


def _checked(source: Source, folder: Path | None, config: StudyConfig) -> Source:
    kind = source.located.kind
    weights, no_weights = None, f"a {kind} holds no weights; give a model folder or a hub id"
    if folder is not None:
        try:
            weights, _ = weights_folder(folder, revision=None, trust_remote_code=config.trust_remote_code)
        except InvalidInput as error:
            no_weights = str(error)
    tokenizer = folder if config.tokenizer is None else Path(config.tokenizer)
    no_tokenizer = f"no tokenizer in {kind if tokenizer is None else tokenizer}; give --tokenizer FOLDER"
    if tokenizer is not None and not any((tokenizer / name).is_file() for name in _TOKENIZER_FILES):
        tokenizer = None
    return replace(source, weights=weights, no_weights=no_weights, tokenizer=tokenizer, no_tokenizer=no_tokenizer)
