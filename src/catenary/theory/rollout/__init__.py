"""Residual-aware attention rollout, arXiv 2602.16837: products of softmax kernels and identities, one row at a time."""
