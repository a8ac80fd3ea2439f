"""The attention and the feed-forward branch of a layer are found by what cutting them does."""

from __future__ import annotations

import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.branches import cut, find_branches
from catenary.models.undisturbed import undisturbed
from families.tiny import TINY, type_of

EXPECTED = {
    "llama": ("self_attn", "mlp"),
    "gpt2": ("attn", "mlp"),
    "opt": ("self_attn", "fc2"),
    "gemma2": ("self_attn", "post_feedforward_layernorm"),
    "olmo2": ("self_attn", "post_feedforward_layernorm"),
    "gptj": ("attn", "mlp"),
    # its dropout runs on both branches, so the feed-forward is what is cut
    "phi": ("self_attn", "mlp"),
    # both branches add the residual themselves: the cut lies inside one and before the other
    "bloom": ("self_attention.dense", "post_attention_layernorm"),
    "dbrx": ("norm_attn_norm.attn", "ffn"),
    "mixtral": ("self_attn", "mlp"),
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_the_branches(name: str) -> None:
    model = ct.load({"model_type": type_of(name), **TINY[name].config})
    with undisturbed(model.module):
        found = find_branches(model.anatomy)
    assert len(found) == len(model.anatomy.layers)
    for layer, branches in zip(model.anatomy.layers, found, strict=True):
        names = {part: path for path, part in layer.named_modules()}
        assert branches.feed_forward is not None
        assert (names[branches.attention], names[branches.feed_forward]) == EXPECTED[name]


def test_a_cut_changes_no_output_and_is_undone() -> None:
    model = ct.load({"model_type": "llama", **TINY["llama"].config})
    layer = model.anatomy.layers[0]
    with undisturbed(model.module):
        branches = find_branches(model.anatomy)[0]
        vectors, mask = torch.randn(1, 8, 128, generator=torch.Generator().manual_seed(0)), torch.ones(1, 8).long()
        before = model.anatomy.stream(vectors, mask)
        with cut([branches.attention, branches.feed_forward]):
            assert torch.equal(model.anatomy.stream(vectors, mask), before)
    assert not any(part._forward_hooks for part in layer.modules())


def test_a_layer_of_attention_alone() -> None:
    model = ct.load({"model_type": "llama", **TINY["llama"].config})
    for layer in model.anatomy.layers:
        layer.mlp.register_forward_hook(lambda _, __, out: 0 * out.detach())
    with undisturbed(model.module):
        assert all(branches.feed_forward is None for branches in find_branches(model.anatomy))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opt-post-norm", "OPTDecoderLayer: layer 0 is no identity"),
        ("bloom-normed", "BloomBlock: layer 0 is no identity"),
        ("lfm2", "layer 0 has no attention weights"),
        ("xlm", "input of layer 1 is not the output of layer 0"),
    ],
)
def test_layers_that_are_not_identity_plus_branches_are_refused(name: str, words: str) -> None:
    model = ct.load({"model_type": type_of(name), **TINY[name].config})
    with undisturbed(model.module), pytest.raises(NotApplicable, match=words):
        find_branches(model.anatomy)
