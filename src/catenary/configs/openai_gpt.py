"""The first GPT: learned positions, and a LayerNorm behind each addition."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding, FeedForward, post_norm
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std

CONV_STD = 0.02
"""The class's matrices keep the std they are made with, whatever ``initializer_range`` says; embeddings follow it."""

FUNCTIONS = {"relu": "relu", "silu": "silu", "gelu": "gelu_new", "swish": "silu"}
"""The class's own names of activations: its gelu is the tanh approximation."""


@reads("openai-gpt")
def openai_gpt(fields: Fields) -> Architecture:
    """Post-norm without a final norm, feed-forward networks of 4 times the width."""
    embedding_std = initial_std(fields)
    sizes = replace(read_even_sizes(fields), std=CONV_STD)
    activation = FUNCTIONS[fields.choice("afn", known=FUNCTIONS)]
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        FeedForward(4 * sizes.width, False, activation, sizes.std, sizes.std),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        block=post_norm,
        final_norm=None,
        embedding=Embedding(embedding_std, position_std=embedding_std),
        position="learned",
        initialisation=(
            f"transformers' OpenAI-GPT: embeddings and positions N(0, {embedding_std:.6g}^2), matrices "
            f"N(0, {CONV_STD:g}^2) whatever initializer_range says, biases 0, norm weights 1"
        ),
    )
