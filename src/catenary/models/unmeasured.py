"""Model types whose Jacobian cannot be measured, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.errors import NotApplicable

NO_VECTORS = "so that no vectors can be fed in place of tokens"
DRAFTS = "it drafts tokens from another model's keys and values, which it cannot run without"

UNMEASURED: Mapping[str, str] = {
    "blt": f"it cuts bytes into patches by their ids, {NO_VECTORS}",
    "cpmant": f"it reads token ids only, {NO_VECTORS}",
    "deepseek_v4": f"a hash of the token ids chooses its first experts, {NO_VECTORS}",
    "gemma4_assistant": DRAFTS,
    "gemma4_unified_assistant": DRAFTS,
    "hrm_text": "it runs most of its loops without gradients, so that autograd does not give its Jacobian",
    "musicgen": "it reads several codebooks at every position, behind a text encoder",
    "musicgen_melody": "it reads several codebooks at every position, behind a text and a melody",
    "prophetnet": "it predicts from a stream of its own for each token ahead, beside the one that carries the text",
    "reformer": "its reversible layers give gradients in training mode only, where attention hashes at random",
}
"""Model type to reason. Every other causal type of transformers is measured in the tests."""


def check_measurable(model_type: str | None) -> None:
    """Raise ``NotApplicable`` for a type of ``UNMEASURED``, with its reason."""
    if model_type is not None and model_type in UNMEASURED:
        raise NotApplicable(f"{model_type} cannot be measured: {UNMEASURED[model_type]}")
