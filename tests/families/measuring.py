"""Every causal model type of transformers as a tiny network to measure, and what must hold of its profile."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.portrait import portrait
from families.small import SMALL
from families.tiny import TINY, type_of

LENGTH, PADS, PROBES = 8, 3, 4

STEPS = (3e-2, 3e-3, 3e-4)
"""Of central differences, relative to the vectors' size: rounding (1e-7/step) and curvature are small in one, and a
router that changes its mind within a long step seldom does within a short one."""

QUARTERED = {
    "hidden_size", "n_embd", "d_model", "emb_dim", "embedding_size", "input_embedding_size", "output_embedding_size",
    "word_embed_proj_dim", "head_dim", "global_head_dim", "rotary_dim", "v_head_dim", "qk_nope_head_dim",
    "qk_rope_head_dim", "index_head_dim", "kv_lora_rank", "q_lora_rank", "intermediate_size", "intermediate_size_mlp",
    "moe_intermediate_size", "shared_intermediate_size", "shared_expert_intermediate_size", "ffn_dim",
    "ffn_hidden_size", "decoder_ffn_dim", "prefix_dense_intermediate_size", "dff", "query_pre_attn_scalar",
    "sliding_window", "window_size", "local_attention", "attention_chunk_size",
}  # fmt: skip
"""Fields of a verified type's config that are widths or windows: a quarter of them is quick to differentiate."""

DEPTHS = {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"}
VOCABULARIES = {"vocab_size", "n_words", "decoder_vocab_size"}

CHANGED: Mapping[str, dict[str, Any]] = {
    "gemma4": {"image_token_id": 60, "audio_token_id": 61, "video_token_id": 62},
    "gemma4_unified": {"image_token_id": 60, "audio_token_id": 61, "video_token_id": 62},
    "gpt_neo": {"attention_types": [[["local", "global"], 1]]},
    "mllama": {"text_config": {"cross_attention_layers": [1], "num_hidden_layers": 3}},
}
"""What two layers and 64 tokens need that a type's own config says for more."""


def tiny(model_type: str) -> dict[str, Any]:
    """A config of some thousand parameters: two layers or one period of them, width 32 or 64."""
    if model_type in SMALL:
        return {"model_type": model_type, **SMALL[model_type]}
    config = _shrunk(next(TINY[name].config for name in TINY if type_of(name) == model_type))
    for name, value in CHANGED.get(model_type, {}).items():
        config[name] = {**config[name], **value} if isinstance(value, dict) else value
    return {"model_type": model_type, **config}


def _shrunk(config: Mapping[str, Any]) -> dict[str, Any]:
    depth = next((config[name] for name in DEPTHS if name in config), None)
    shrunk: dict[str, Any] = {}
    for name, value in config.items():
        if name in ("text_config", "attn_config", "ffn_config"):
            value = _shrunk(value)
        elif name in QUARTERED and isinstance(value, int):
            value = max(2, value // 4)
        elif name in DEPTHS:
            value = 2
        elif name in ("initializer_range", "init_std"):
            value = 2 * value
        elif name in VOCABULARIES:
            value = 64
        elif isinstance(value, list) and len(value) == depth:
            value = [value[0], value[-1]]
        shrunk[name] = value
    return shrunk


Row = dict[str, str]
"""What stands in the table about one type, in words."""


@dataclass(frozen=True)
class Checked:
    """Relative differences of one type's profile from what it must equal, and what was found in the network.

    Attributes:
        row: its anatomy in words.
        dense: of the exact profile of the second of two windows from a dense Jacobian of that window alone.
        difference: of a directional derivative by autograd from a central difference of the network itself.
        eager: of sdpa from eager; 0 where there is no sdpa.
        padded: of three left pads from none, None where such a network is refused.
        spread: of probes from the exact energy, in its standard errors.
    """

    row: Row
    dense: float
    difference: float
    eager: float
    padded: float | None
    spread: float


def check(model_type: str, norm: str) -> Checked:
    """Build, measure and differentiate one type; ``norm`` is the path of its final norm, empty without one."""
    model = build(model_type)
    ids = np.random.default_rng(0).integers(3, 16, (2, LENGTH))
    exact = energies(model, ids, method="exact")[1, 0]
    jacobian = dense_jacobian(model.module, norm, model.anatomy.embedding, ids[1:])
    dense = np.square(jacobian).sum((0, 2))
    assert np.isfinite(exact).all()
    assert ((exact > 0) == (dense > 0)).all()
    assert exact[-1] > 0
    probed = energies(model, ids, probes=PROBES)
    flat = jacobian.reshape(len(jacobian), -1)
    error = np.sqrt(2 * np.square(flat @ flat.T).sum() / PROBES)
    other = energies(build(model_type, "eager"), ids, probes=PROBES) if model.attention == "sdpa" else probed
    behind, mask = np.full((2, PADS + LENGTH), 5), np.ones((2, PADS + LENGTH), dtype=np.int64)
    behind[:, PADS:], mask[:, :PADS] = ids, 0
    try:
        padded = apart(energies(model, behind, probes=PROBES, attention_mask=mask), probed)
    except NotApplicable:
        padded = None
    found = portrait(model.module, model.anatomy)
    row = {
        "layers": found.layers, "final_norm": found.final_norm, "positions": found.positions, "mixers": found.mixers,
        "attention": model.attention, "padding": "seen" if padded is None else "invisible",
    }  # fmt: skip
    return Checked(
        row, apart(exact, dense), difference(model, ids[:1]), apart(other, probed), padded,
        float((probed[1].mean(0).sum() - dense.sum()) / error),
    )  # fmt: skip


def build(model_type: str, attention: str = "sdpa") -> ct.Model:
    """The untrained tiny network of a type; dead parts that its initialisation has are no concern here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*constant: a dead")
        return ct.load(tiny(model_type), seed=0, attention=attention)


def energies(model: ct.Model, ids: NDArray[np.int64], **options: Any) -> NDArray[np.float64]:
    """Squared norms by window, probe and position, all windows in one batch."""
    return ct.measure_jacobian(model, ids, batch_size=len(ids), **options).energy[0, 0, 0]


def apart(seen: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """Largest difference of norms over positions, relative to the largest norm."""
    return float(np.abs(np.sqrt(seen) - np.sqrt(expected)).max() / np.sqrt(expected.max()))


def dense_jacobian(
    module: torch.nn.Module, norm: str, embedding: torch.nn.Module, ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(d out, T, d in) of the last position by autograd through the whole model, caught in front of a named norm."""
    caught: list[Any] = []

    def before(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        caught.append(arguments[0] if arguments else named["hidden_states"])

    def last(vectors: torch.Tensor) -> torch.Tensor:
        output = module(inputs_embeds=1 * vectors, use_cache=False, output_hidden_states=not norm)
        return (caught if norm else output.hidden_states)[-1][0, -1]

    handles = [module.get_submodule(norm).register_forward_pre_hook(before, with_kwargs=True)] if norm else []
    try:
        with torch.no_grad():
            vectors = embedding(torch.from_numpy(ids))
        jacobian = torch.autograd.functional.jacobian(last, vectors)
    finally:
        for handle in handles:
            handle.remove()
    return np.asarray(jacobian[:, 0].double().numpy())


def difference(model: ct.Model, ids: NDArray[np.int64]) -> float:
    """Relative difference of a directional derivative by autograd and by moving the vectors, at the best step."""
    embedding, generator = model.anatomy.embedding, torch.Generator().manual_seed(0)
    mask = torch.ones(ids.shape, dtype=torch.long)
    with torch.no_grad():
        vectors = embedding(torch.from_numpy(ids))
    direction = torch.randn(vectors.shape, generator=generator)
    leaf = vectors.clone().requires_grad_(True)
    last = model.anatomy.stream(1 * leaf, mask)[0, -1]
    weights = torch.randn(last.shape, generator=generator)
    (gradient,) = torch.autograd.grad(last, leaf, weights)
    expected, size = float((gradient * direction).sum()), float(gradient.norm() * direction.norm())
    found = []
    for step in (step * float(vectors.std()) for step in STEPS):
        with torch.no_grad():
            up, down = (model.anatomy.stream(vectors + sign * step * direction, mask)[0, -1] for sign in (1, -1))
        found.append(float(((up - down) * weights).sum()) / (2 * step))
    return min(abs(value - expected) for value in found) / size
