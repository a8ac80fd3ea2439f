"""Names of the feed-forward functions that transformers knows (its ACT2FN table, 5.24)."""

from __future__ import annotations

ACTIVATIONS = frozenset({
    "gelu", "gelu_10", "gelu_accurate", "gelu_fast", "gelu_new", "gelu_python", "gelu_python_tanh",
    "gelu_pytorch_tanh", "hardswish", "laplace", "leaky_relu", "linear", "mish", "prelu", "quick_gelu", "relu",
    "relu2", "relu6", "sigmoid", "silu", "sqrtsoftplus", "swish", "tanh", "xielu",
})  # fmt: skip
"""Whether a theory has the moments of a function is the theory's matter; a name that is not here is a mistake."""
