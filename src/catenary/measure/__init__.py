"""Measurements on real networks. Each returns a Sample."""
