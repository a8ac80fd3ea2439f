"""Every study, one file each; importing this registers all of them."""

from catenary.reproduce.studies import (
    closed_form,
    correlation_rate,
    mean_field_rate,
    near_one_curve,
    positional_slope,
    printed_sum,
    source_blind,
    spheres,
    u_shape,
)

__all__ = [
    "closed_form", "correlation_rate", "mean_field_rate", "near_one_curve", "positional_slope", "printed_sum",
    "source_blind", "spheres", "u_shape",
]  # fmt: skip
