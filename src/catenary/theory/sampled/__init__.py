"""Drawn heads: the reference that the couplings are held against, and the spread of single networks."""
