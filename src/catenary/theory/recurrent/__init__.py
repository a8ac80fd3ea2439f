"""Mixers of layers without a softmax: convolutions over a few tokens, decaying states."""
