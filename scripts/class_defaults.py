"""Write src/catenary/configs/class_defaults.json: what transformers' config classes take for fields left out."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING, PreTrainedConfig, __version__
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

TARGET = Path(__file__).parent.parent / "src" / "catenary" / "configs" / "class_defaults.json"

IRRELEVANT = re.compile(
    r"_token_id$|_token_index$|dropout|pdrop|dropout_p$|layerdrop|^use_cache$|^summary_|aux_loss|z_loss|^output_|"
    r"^tie_word_embeddings$|^pretraining_tp$|^mask_(time|feature)_|suppress_tokens|^router_jitter|^init_device$|"
    r"^(vision|audio|vq|text|patcher|encoder|decoder|global)_config$|^return_|^reorder_|kernel$|^mtp_|vocabulary_map"
)
"""Fields that say nothing about shape, initialisation or routing."""


UNNAMED_TEXT = {"gemma4_assistant": "gemma4_text", "gemma4_unified_assistant": "gemma4_unified_text"}
"""Types whose class cannot be made without arguments."""


def describe(config: Any) -> dict[str, Any]:
    """Defaults, attribute names, RoPE base and the type of the text part of one config class."""
    inherited = {field.name for field in dataclasses.fields(PreTrainedConfig)}
    fields = {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(config)
        if field.name not in inherited
        and not IRRELEVANT.search(field.name)
        and (field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING)
    }
    row: dict[str, Any] = {"defaults": {name: plain(value) for name, value in fields.items()}}
    if config.attribute_map:
        row["names"] = dict(config.attribute_map)
    if config.default_theta != PreTrainedConfig.default_theta:
        row["theta"] = config.default_theta
    if "text_config" in config.sub_configs:
        named = getattr(config.sub_configs["text_config"], "model_type", "")
        row["text"] = named or UNNAMED_TEXT.get(config.model_type) or config().text_config.model_type
    return row


def plain(value: Any) -> Any:
    """A JSON value; anything else by its text."""
    return value if isinstance(value, int | float | str | bool | list | tuple | dict | None) else str(value)


def table() -> str:
    """The file's text: one line per causal model type, and per type of text part that is not one itself."""
    rows = {kind: {**describe(CONFIG_MAPPING[kind]), "causal": True} for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES}
    for text in {row["text"] for row in rows.values() if "text" in row} - set(rows):
        rows[text] = {**describe(CONFIG_MAPPING[text]), "causal": False}
    lines = [f"{json.dumps(kind)}: {json.dumps(rows[kind], sort_keys=True)}" for kind in sorted(rows)]
    return f'{{"transformers": "{__version__}", "types": {{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    TARGET.write_text(table(), "utf-8")
