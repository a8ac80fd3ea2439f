"""The dense Jacobian of the pre-norm stream, by taking the final norm out of the network and calling autograd once."""

from __future__ import annotations

import numpy as np
import torch


def dense_jacobian(module: torch.nn.Module, norm_name: str, vectors: np.ndarray) -> np.ndarray:
    """(L, d out, d in) of the last position's stream for vectors (L, d)."""
    backbone = module.base_model
    norm = getattr(backbone, norm_name)
    setattr(backbone, norm_name, torch.nn.Identity())
    try:
        def last(x: torch.Tensor) -> torch.Tensor:
            return backbone(inputs_embeds=x[None], use_cache=False).last_hidden_state[0, -1]

        dtype = next(module.parameters()).dtype
        result = torch.autograd.functional.jacobian(last, torch.from_numpy(vectors).to(dtype))
    finally:
        setattr(backbone, norm_name, norm)
    return result.double().numpy().transpose(1, 0, 2)
