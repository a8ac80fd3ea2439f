"""StudyConfig: everything that decides the numbers of one run, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from catenary.errors import InvalidInput

Tokens = Literal["vanilla", "chunked", "shuffled", "uniform", "random", "zipf"]
Bos = Literal["tokenizer", "none", "one"]
Settings = TypeVar("Settings", bound=BaseModel)
Count = Annotated[int, Field(ge=1, le=100_000)]


def _named(model: object) -> object:
    """No MODEL at all is the same mistake as an empty one."""
    return "" if model is None else model


def split_words(kinds: object) -> object:
    """A tuple of words, also given as one comma-separated string."""
    return tuple(part.strip() for part in kinds.split(",") if part.strip()) if isinstance(kinds, str) else kinds


class StudyConfig(BaseModel):
    """What to profile and how; stored in ``result.json``, from which the run can be repeated.

    ``nets`` untrained networks share the ``windows`` document windows between them (each network gets
    windows / nets of its own), and ``check_nets`` networks with ``check_sequences`` sequences of random vectors
    each are the quantitative check of the prediction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1), BeforeValidator(_named)]
    revision: str | None = None
    tokenizer: str | None = None
    trust_remote_code: bool = False
    length: Annotated[int, Field(ge=16, le=1 << 20)] = 512
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    init_std: Annotated[float, Field(gt=0, lt=10)] | None = None
    rope: bool = True
    documents: str | None = None
    conditions: Annotated[tuple[Tokens, ...], BeforeValidator(split_words)] = ("vanilla", "chunked")
    windows: Count = 24
    chunk: Annotated[int, Field(ge=2)] | None = None
    bos: Bos = "tokenizer"
    nets: Count = 8
    probes: Count = 2
    trained_probes: Count = 1
    check_nets: Count = 4
    check_sequences: Count = 2
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["sdpa", "eager"] = "sdpa"
    batch_size: Count = 1

    @property
    def windows_per_net(self) -> int:
        """Document windows that each untrained network sees."""
        return max(1, self.windows // self.nets)


def study_config(values: Mapping[str, Any]) -> StudyConfig:
    """Validate; raises ``InvalidInput`` with one line per field at fault."""
    return validated(StudyConfig, values)


def validated(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """The settings of a pydantic class from plain values; raises ``InvalidInput`` with one line per field at fault."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg'].lower()}, got {e['input']!r:.80}"
            for e in error.errors(include_url=False)
        ]
        raise InvalidInput("; ".join(lines)) from None


def stored_config(result: Path) -> StudyConfig:
    """The config stored in a ``result.json``, to run it again."""
    try:
        return study_config(json.loads(result.read_text(encoding="utf-8"))["config"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"rerun must be the result.json of a profile, got {str(result)!r}: {error}") from error
