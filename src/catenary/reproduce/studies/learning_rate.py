"""Is a position learned at a rate proportional to its influence at birth? Small networks from scratch, one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from catenary.page.exhibit import Plate
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.pupils import learning_config
from catenary.study.learning import Assignment, learn_by_position
from catenary.study.observer import Observer


def learning_rate(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Steps to half accuracy by position against the profile of the same networks before training.

    Settings: ``task`` (lookup or place), ``network`` (a config) or ``model``, ``length``, ``seeds`` (two or more),
    ``most`` (updates), ``bin``, ``stride``. Intervals are Student's over seeds, each another network.
    """
    with learning_config(settings) as (config, folder):
        assignment = Assignment(
            task=str(settings["task"]), seeds=int(settings["seeds"]), most=int(settings["most"]),
            bin=int(settings["bin"]), stride=int(settings["stride"]),
        )  # fmt: skip
        found = learn_by_position(config, assignment, folder, observer)
    rows = [
        (lesson.seed, int(edge) + 1, float(birth), float(half))
        for lesson in found.lessons
        for edge, birth, half in zip(found.edges[:-1], lesson.birth, lesson.half, strict=True)
    ]
    readings = (found.elasticity, replace(found.slowest, name="slowest over fastest"),
                replace(found.spread, name="influence at birth, highest over lowest"))  # fmt: skip
    curves = [
        (f"seed {lesson.seed}", sorted((float(b / lesson.birth.mean()), float(h / np.nanmean(lesson.half)))
                                       for b, h in zip(lesson.birth, lesson.half, strict=True) if np.isfinite(h)))
        for lesson in found.learned
    ]  # fmt: skip
    caption = "Updates to half accuracy against influence at birth, by bins of positions, both over their mean."
    axes: dict[str, Any] = {"x": "influence at birth over its mean", "y": "updates to half accuracy over their mean"}
    plates = (Plate("rate", lines(curves, log_x=True, log_y=True, **axes), caption, caption),) if curves else ()
    return Finding(
        f"{found.task}: {found.label}, L = {found.length}, {len(found.lessons)} networks from scratch, Adam at 3e-3, "
        f"32 fresh windows an update, bins of {settings['bin']}; {len(found.learned)} learned the task everywhere",
        readings, plates, ("seed", "first_position_of_bin", "influence_at_birth", "updates_to_half"), rows,
    )  # fmt: skip


STUDIES.register("learning-rate", learning_rate)
