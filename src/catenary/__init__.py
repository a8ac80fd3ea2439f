"""catenary: predict, measure and reduce position bias in causal transformer language models.

The public names are loaded on first use, so that importing the package stays fast and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Architecture": "catenary.architecture",
    "BoundaryEffect": "catenary.boundaries",
    "Comparison": "catenary.comparison",
    "InvalidInput": "catenary.errors",
    "MissingResource": "catenary.errors",
    "Model": "catenary.models.model",
    "NotApplicable": "catenary.errors",
    "Profile": "catenary.profile",
    "Sample": "catenary.sample",
    "Shape": "catenary.shape",
    "Windows": "catenary.text.windows",
    "birth_quantiles": "catenary.theory.sampled.quantiles",
    "boundary_effect": "catenary.boundaries",
    "check_controls": "catenary.controls.run",
    "chunked_windows": "catenary.text.chunked",
    "compare": "catenary.comparison",
    "describe": "catenary.shape",
    "fit_cesaro": "catenary.theory.cesaro.fit",
    "follow_training": "catenary.evolution",
    "load": "catenary.models.load",
    "measure_attention": "catenary.measure.attention_statistics",
    "measure_content": "catenary.measure.attention_content",
    "measure_jacobian": "catenary.measure.jacobian",
    "measure_paths": "catenary.measure.pathways",
    "measure_pathways": "catenary.measure.pathways",
    "measure_positions": "catenary.measure.jacobian",
    "measure_rollout": "catenary.measure.rollout",
    "measure_strengths": "catenary.measure.strengths",
    "predict": "catenary.theory.prediction",
    "predicted_strengths": "catenary.theory.strengths",
    "random_windows": "catenary.text.synthetic",
    "read_config": "catenary.configs.read",
    "read_documents": "catenary.text.documents",
    "read_run": "catenary.store",
    "sensitivities": "catenary.explore.sensitivity",
    "shuffled_windows": "catenary.text.controls",
    "survey": "catenary.explore.atlas",
    "uniform_windows": "catenary.text.controls",
    "vanilla_windows": "catenary.text.vanilla",
    "vary": "catenary.explore.variation",
    "write_atlas": "catenary.page.atlas",
    "write_report": "catenary.page.report",
    "zipf_windows": "catenary.text.synthetic",
}

_PACKAGES = ("kinetic",)
"""Packages that are public under their own name."""

__all__ = ["__version__", *sorted((*_PUBLIC, *_PACKAGES))]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name in _PACKAGES:
        return importlib.import_module(f"catenary.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'catenary' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
