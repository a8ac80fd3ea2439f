"""Feed-forward networks at birth: activations, kernels, experts."""
