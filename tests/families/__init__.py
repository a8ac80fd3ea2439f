"""Tiny networks of every described model type, and the contract that each of them must keep."""
