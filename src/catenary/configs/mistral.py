"""Sliding windows in Llama's block: Mistral, Ministral, Phi-3, CWM, SmolLM3."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs.decoder import Sizes, attentions, even_split, llama_decoder, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning, read_turnings
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_qwen_window, read_window


@reads("mistral")
def mistral(fields: Fields) -> Architecture:
    """``sliding_window`` holds for every layer; left out it means 4096, and only null means none."""
    return _one_window(fields, read_sizes(fields))


@reads("ministral3")
def ministral3(fields: Fields) -> Architecture:
    """Mistral's block; without ``rope_parameters`` the base is 10^6, and windows are off unless given."""
    sizes = read_sizes(fields)
    bare = not (fields.has("rope_parameters") or fields.has("rope_scaling"))
    fields.note("queries beyond the original context length grow with ln(position), which is not described")
    return _one_window(fields, sizes, theta=1e6 if bare else None)


@reads("phi3", "phi4_multimodal")
def phi3(fields: Fields) -> Architecture:
    """Mistral's block; ``rope_scaling`` of type su and yarn is read as longrope, as transformers does."""
    return _one_window(fields, read_sizes(fields), also={"su": "longrope", "yarn": "longrope"})


def _one_window(fields: Fields, sizes: Sizes, **rotary: object) -> Architecture:
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    turning = read_turning(fields, sizes.head_dim, **rotary)  # type: ignore[arg-type]
    return llama_decoder(fields, sizes, attentions(sizes, kernels=bands, turnings=turning))


@reads("ministral")
def ministral(fields: Fields) -> Architecture:
    """``layer_types`` say which layers slide; left out, all do."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    return _windows(fields, sizes, (FULL if window is None else SLIDING,) * sizes.depth, window)


@reads("cwm")
def cwm(fields: Fields) -> Architecture:
    """Full attention in layers 0, 4, 8, ..., windows elsewhere."""
    even_split(fields)
    sizes = read_sizes(fields)
    pattern = tuple(SLIDING if index % 4 else FULL for index in range(sizes.depth))
    return _windows(fields, sizes, pattern, read_window(fields))


def _windows(fields: Fields, sizes: Sizes, pattern: tuple[str, ...], window: int | None) -> Architecture:
    kinds = read_kinds(fields, sizes.depth, pattern)
    bands = kernels(fields, kinds, window=window)
    turnings = read_turnings(fields, sizes.head_dim, kinds)
    return llama_decoder(fields, sizes, attentions(sizes, kernels=bands, turnings=turnings))


@reads("smollm3")
def smollm3(fields: Fields) -> Architecture:
    """Every fourth layer does not turn its queries and keys (``no_rope_layers`` has a 0 there), and may slide."""
    sizes = read_sizes(fields)
    turned = fields.optional_integers("no_rope_layers", count=sizes.depth, most=1)
    if turned is None:
        interval = fields.integer("no_rope_layer_interval", most=sizes.depth + 10**6)
        turned = tuple(int(kind == SLIDING) for kind in full_every(sizes.depth, interval))
    window = read_qwen_window(fields)
    pattern = tuple(FULL if window is None or flag else SLIDING for flag in turned)
    kinds = read_kinds(fields, sizes.depth, pattern)
    bands = kernels(fields, kinds, window=window)
    turning = read_turning(fields, sizes.head_dim)
    turnings = tuple(turning if flag else None for flag in turned)
    return llama_decoder(fields, sizes, attentions(sizes, kernels=bands, turnings=turnings))
