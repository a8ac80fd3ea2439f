"""RetrieveConfig: everything that decides the numbers of one retrieval study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from catenary.study.config import Bos, Count


class RetrieveConfig(BaseModel):
    """What is asked of which model, and how it is scored; stored with the result.

    ``model`` is empty where an ``endpoint`` answers. ``resolve`` picks the sample count, up to ``samples``. With
    ``chat`` auto a network continues the prompt as it stands, and an endpoint gets it as one turn of a chat. ``link``
    is how many held-out prompts predictors are read from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = ""
    endpoint: str = ""
    endpoint_model: str = ""
    task: Annotated[str, Field(min_length=1)] = "key-value"
    task_options: Mapping[str, Any] = Field(default_factory=dict)
    length: Annotated[int, Field(ge=1)] | None = None
    samples: Count = 60
    link: Annotated[int, Field(ge=0, le=100_000)] = 0
    positions: Annotated[int, Field(ge=1, le=1000)] = 10
    resolve: Annotated[float, Field(gt=0, le=10)] | None = None
    metric: Literal["exact", "contains", "best_subspan", "logp"] = "best_subspan"
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    bos: Bos = "tokenizer"
    chat: Literal["auto", "on", "off"] = "auto"
    max_length: Annotated[int, Field(ge=1)] | None = None
    max_new_tokens: Annotated[int, Field(ge=1, le=100_000)] = 40
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    attention: Literal["sdpa", "eager"] = "sdpa"
    revision: str | None = None
    tokenizer: str | None = None
    trust_remote_code: bool = False
