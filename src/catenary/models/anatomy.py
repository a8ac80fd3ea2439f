"""Find the parts of any Hugging Face decoder by what they do, not by what they are called.

A pilot run on six vectors shows which module is the final norm and whether the network is causal.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int

from catenary.errors import NotApplicable, invalid
from catenary.models.elsewhere import device_of
from catenary.models.extra import torch
from catenary.models.stream import accepts, first_tensor, inputs_of, outputs_of, run
from catenary.models.undisturbed import undisturbed
from catenary.models.unmeasured import check_measurable

PILOT = 6
"""Tokens of the pilot run: enough for a query with positions on both sides, and cheap for any network."""

QUERY = 2
"""The position whose stream must not depend on later vectors."""

FAULTS = (AttributeError, AssertionError, IndexError, KeyError, NotImplementedError, TypeError)
"""What code of transformers raises when it needs more than vectors; running out of memory is none of them."""

LEAK = 1e-6
"""Largest gradient at later positions, relative to the earlier ones, that counts as rounding.

One type (xlnet) shows 5e-8; a bidirectional network shows order 1.
"""


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The parts of a decoder: token embedding, backbone, layers, and the norm after the last layer.

    ``final_norm`` is None where the last layer's output leaves the backbone as it is.
    """

    embedding: torch.nn.Module
    backbone: torch.nn.Module
    layers: tuple[torch.nn.Module, ...]
    final_norm: torch.nn.Module | None

    def stream(
        self,
        vectors: Float[torch.Tensor, "n L fed"],
        mask: Int[torch.Tensor, "n L"],
        positions: Int[torch.Tensor, "n L"] | None = None,
    ) -> Float[torch.Tensor, "n L d"]:
        """The residual stream in front of the final norm, (n, L, d), for vectors fed as embedded tokens.

        ``hidden_states[-1]`` of transformers is after the final norm in every model type, so the stream is taken
        as the norm's input.
        """
        if self.final_norm is None:
            return run(self.backbone, vectors, mask, positions)
        with inputs_of(self.final_norm) as seen:
            run(self.backbone, vectors, mask, positions)
        assert seen, "the final norm was not run"
        return seen[-1]  # nanochat's norm also runs behind the embedding


def dissect(module: torch.nn.Module) -> Anatomy:
    """Find embedding, backbone, layers and final norm of a causal decoder, and check that it is causal.

    The final norm is the first module outside the layers whose output equals ``last_hidden_state``.

    Raises:
        NotApplicable: for an encoder-decoder, a network that cannot be fed vectors, or one that is not causal.
        InvalidInput: when the pilot run gives NaN or inf.
    """
    kind = type(module).__name__
    check_measurable(getattr(getattr(module, "config", None), "model_type", None))
    if getattr(getattr(module, "config", None), "is_encoder_decoder", False):
        raise NotApplicable(f"{kind} is an encoder-decoder; positions are measured in decoder-only networks")
    embedding = getattr(module, "get_input_embeddings", lambda: None)()
    if not isinstance(embedding, torch.nn.Module):
        raise NotApplicable(f"{kind} names no input embedding; give a transformers model with a token embedding")
    backbone = _backbone(module)
    layers = _layers(module, backbone)
    with undisturbed(module):
        try:
            final_norm = _pilot(module, embedding, backbone, layers)
        except FAULTS as error:
            reason = " ".join(str(error).split())[:200]
            raise NotApplicable(
                f"{kind} cannot be run and differentiated on vectors in place of tokens; it says "
                f"{type(error).__name__}: {reason}"
            ) from error
    return Anatomy(embedding, backbone, layers, final_norm)


def _backbone(module: torch.nn.Module) -> torch.nn.Module:
    """The stack that takes ``inputs_embeds``; ``get_decoder`` returns the vocabulary matrix in one model type.

    In another it returns the whole model with its vocabulary matrix; the stack is then one of the children.
    """
    named = [getattr(module, "get_decoder", lambda: None)(), getattr(module, "base_model", None)]
    whole = getattr(module, "get_output_embeddings", lambda: None)() is None
    for part in (*(part for part in named if part is not module), *([module] if whole else module.children())):
        if isinstance(part, torch.nn.Module) and accepts(part, "inputs_embeds"):
            return part
    raise NotApplicable(
        f"{type(module).__name__} has no backbone that takes vectors in place of token ids (inputs_embeds); give the "
        "transformers model itself, with adapters merged"
    )


def _layers(module: torch.nn.Module, backbone: torch.nn.Module) -> tuple[torch.nn.Module, ...]:
    config = getattr(module, "config", None)
    if config is not None and hasattr(config, "get_text_config"):
        config = config.get_text_config()
    # The decoder of an encoder-decoder keeps its parent's config, whose num_hidden_layers counts the encoder.
    depth = getattr(config, "decoder_layers", None) or getattr(config, "num_hidden_layers", None)
    stacks = [part for part in backbone.modules() if isinstance(part, torch.nn.ModuleList)]
    for stack in stacks:
        if len(stack) == depth:
            return tuple(stack)
    raise NotApplicable(
        f"{type(module).__name__} has no list of {depth} layers (num_hidden_layers); found lists of "
        f"{sorted({len(stack) for stack in stacks})}"
    )


def embed_some(embedding: torch.nn.Module, count: int) -> Float[torch.Tensor, "1 n d"]:
    """What the embedding module gives for up to ``count`` token ids spread over the vocabulary, detached.

    The module's output is used, not its weight: Gemma-like models scale inside the module.
    """
    weight = embedding.weight
    assert isinstance(weight, torch.Tensor)
    rows = min(count, weight.shape[0])
    ids = torch.arange(rows, device=device_of(embedding)) * weight.shape[0] // rows
    with torch.no_grad():
        return first_tensor(embedding(ids[None])).detach()


def _pilot(
    module: torch.nn.Module,
    embedding: torch.nn.Module,
    backbone: torch.nn.Module,
    layers: tuple[torch.nn.Module, ...],
) -> torch.nn.Module | None:
    vectors = pilot_vectors(embedding).requires_grad_(True)
    shape = tuple(vectors.shape)
    inside = {id(part) for layer in layers for part in layer.modules()}
    outside = [part for part in backbone.modules() if id(part) not in inside and part is not backbone]

    def whole(output: object) -> bool:
        return isinstance(output, torch.Tensor) and output.ndim == 3 and tuple(output.shape[:2]) == shape[:2]

    with outputs_of(outside, whole) as seen, inputs_of(layers[-1]) as reached:
        last = run(backbone, vectors.clone(), torch.ones(shape[:2], dtype=torch.long, device=vectors.device))
    assert reached, "the last layer was not run"
    if not torch.isfinite(last).all():
        raise invalid("model", "must give finite hidden states", "NaN or inf", "look for NaN weights or use float32")
    _check_causal(module, last, vectors)
    for part, output in seen:
        if isinstance(output, torch.Tensor) and torch.equal(output, last):
            return part
    return None


def pilot_vectors(embedding: torch.nn.Module, tokens: int = PILOT) -> Float[torch.Tensor, "1 T d"]:
    """Distinct vectors of the embedding's own size, for pilot runs; the same at every call."""
    some = embed_some(embedding, 64)
    scale = float(some.float().std()) or 0.02  # a dead embedding is refused elsewhere, with its name
    noise = torch.randn((1, tokens, some.shape[-1]), generator=torch.Generator().manual_seed(0))
    return (noise * scale).to(some)


def _check_causal(
    module: torch.nn.Module, last: Float[torch.Tensor, "1 T d"], vectors: Float[torch.Tensor, "1 T fed"]
) -> None:
    """Refuse a network whose output at ``QUERY`` has a gradient at later positions."""
    cotangent = torch.linspace(-1, 2, last.shape[-1]).to(last)
    (gradient,) = torch.autograd.grad(last[0, QUERY], vectors, cotangent)
    size = gradient[0].abs().amax(-1)
    leak, reference = float(size[QUERY + 1 :].max()), float(size[: QUERY + 1].max())
    if not leak <= LEAK * reference:
        raise NotApplicable(
            f"{type(module).__name__} is not causal: position {QUERY} depends on later positions (gradient {leak:.2g} "
            f"against {reference:.2g} at earlier ones); the profile of the last position is defined for causal models"
        )
