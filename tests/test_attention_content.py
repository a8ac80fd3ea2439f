"""Content priors without maps equal those of the products written out, fused or by the network's own code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from catenary.errors import NotApplicable
from catenary.measure.attention_content import measure_content
from catenary.models.load import load
from families.tiny import TINY as CASES
from families.tiny import type_of
from tiny_models import TINY, token_windows

LENGTH = 12


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_equals_products_written_out(attention: str) -> None:
    """Llama without RoPE: q and k are the projections of the normed input, read from the weights."""
    model = load(TINY["llama"], dtype="float64", attention=attention, rope=False)
    windows = token_windows(2, LENGTH)
    seen = measure_content(model, windows)
    layer = model.anatomy.layers[0]
    x = layer.input_layernorm(model.anatomy.embedding(torch.tensor(windows.ids)))
    query = layer.self_attn.q_proj(x).view(2, LENGTH, 4, 4).transpose(1, 2)
    key = layer.self_attn.k_proj(x).view(2, LENGTH, 2, 4).transpose(1, 2).repeat_interleave(2, dim=1)
    logits = (query @ key.transpose(-1, -2) / 4**0.5).numpy()
    below = np.tri(LENGTH, k=-1, dtype=bool)
    np.testing.assert_allclose(seen.own[:, 0], logits.diagonal(0, 2, 3).mean(-1), rtol=1e-6)
    np.testing.assert_allclose(seen.earlier[:, 0], logits[..., below].mean(-1), rtol=1e-6, atol=1e-9)
    assert seen.diagonal.shape == (2, 4)


@pytest.mark.parametrize(
    ("name", "scale"), [("bloom", 32**-0.5), ("mpt", 32**-0.5), ("gpt_neo", 1.0), ("gpt_oss", 32**-0.5)]
)
def test_own_code_scales_by_the_configs_factor(name: str, scale: float) -> None:
    """ALiBi is not taken for content: scaled over unscaled is the factor alone."""
    with pytest.warns() if name == "gpt_oss" else np.errstate():
        model = load({"model_type": type_of(name), **CASES[name].config})
    windows = token_windows(1, LENGTH, vocabulary=16)
    scaled, bare = measure_content(model, windows), measure_content(model, windows, compat="unscaled-content")
    assert (scaled.scaled, bare.scaled) == (True, False)
    np.testing.assert_allclose(scaled.own, scale * bare.own, rtol=1e-3)


def test_a_soft_cap_has_no_scale() -> None:
    config = {"model_type": "gemma2", **CASES["gemma2"].config, "attn_logit_softcapping": 0.05}
    model = load(config)
    windows = token_windows(1, LENGTH, vocabulary=16)
    with pytest.raises(NotApplicable, match="soft cap"):
        measure_content(model, windows)
    assert np.isfinite(measure_content(model, windows, scaled=False).own).all()
