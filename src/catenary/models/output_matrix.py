"""The matrix behind a layer's attention: what one head's value becomes in the residual stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float

from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.attention_call import AttentionCall
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.stream import first_tensor, run


@dataclass(frozen=True, eq=False)
class OutputMatrix:
    """The module that takes the heads' mixed values, side by side, back to the stream: a linear map and a bias."""

    module: torch.nn.Module

    def sizes(self, call: AttentionCall) -> Float[torch.Tensor, "n H L"]:
        r"""\\(\\|v_j W_O^h\\|\\) of every head and key, without the bias, in float32 or wider."""
        value = call.value
        assert value is not None
        batch, shared, length, size = value.shape
        sizes = []
        empty = torch.zeros(batch, length, call.heads * size, dtype=value.dtype, device=value.device)
        with torch.no_grad():
            bias = first_tensor(self.module(empty))
            for head in range(call.heads):
                alone = empty.clone()
                alone[..., head * size : (head + 1) * size] = value[:, head * shared // call.heads]
                sizes.append(torch.linalg.vector_norm((first_tensor(self.module(alone)) - bias).float(), dim=-1))
        return torch.stack(sizes, dim=1)


def output_matrices(anatomy: Anatomy) -> Mapping[int, OutputMatrix]:
    """The output matrix of each layer's attention, by layer; a layer in which none is found is left out.

    It is the first module with a matrix that runs behind the attention, in the same layer, on vectors as wide as all
    heads' values together, and whose output is linear in them.
    """
    waiting: dict[int, int] = {}
    found: dict[int, OutputMatrix] = {}

    def receive(call: AttentionCall) -> None:
        if call.value is not None:
            waiting[call.layer] = call.heads * call.value.shape[-1]

    def hook(index: int) -> Any:
        def see(part: torch.nn.Module, arguments: tuple[Any, ...], output: object) -> None:
            wide = index in waiting and arguments and isinstance(arguments[0], torch.Tensor)
            if wide and index not in found and arguments[0].shape[-1] == waiting[index]:
                found[index] = OutputMatrix(part)

        return see

    handles = [
        part.register_forward_hook(hook(index))
        for index, layer in enumerate(anatomy.layers)
        for part in layer.modules()
        if not any(part.children()) and any(weight.ndim == 2 for weight in part.parameters(recurse=False))
    ]
    vectors = pilot_vectors(anatomy.embedding)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    try:
        with torch.no_grad(), attention_calls(anatomy, (1, vectors.shape[1]), receive):
            run(anatomy.backbone, vectors, mask)
    finally:
        for handle in handles:
            handle.remove()
    return found
