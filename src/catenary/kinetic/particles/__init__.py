"""Tokens as interacting particles, on the circle and on spheres: forces, time steps, adjoint."""
