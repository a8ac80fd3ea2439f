"""Attention at birth: what its mean and its fluctuations do to covariances and gradients."""
