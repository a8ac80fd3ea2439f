"""Every study, one file each; importing this registers all of them."""

from catenary.reproduce.studies import (
    closed_form,
    correlation_rate,
    evolution,
    learning_rate,
    mean_field_rate,
    near_one_curve,
    positional_slope,
    printed_sum,
    rollout_measured,
    rollout_published,
    source_blind,
    spheres,
    trained,
    u_shape,
)

__all__ = [
    "closed_form", "correlation_rate", "evolution", "learning_rate", "mean_field_rate", "near_one_curve",
    "positional_slope", "printed_sum", "rollout_measured", "rollout_published", "source_blind", "spheres", "trained",
    "u_shape",
]  # fmt: skip
