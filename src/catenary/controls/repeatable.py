"""Whether measuring twice gives the same bytes."""

from __future__ import annotations

import numpy as np

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject


def _check(subject: Subject) -> Check:
    again = subject.few(subject.model)
    before = subject.norms[: len(again)]
    same = again.tobytes() == before.tobytes()
    change = float(np.abs(again - before).max() / before.max())
    said = "two measurements give the same bytes"
    if not same:
        said = f"two measurements differ by up to {change:.1g} of the largest norm; results are repeatable to that only"
    return judge(NAME, same, said, change=change)


NAME = "repeatable"
REPEATABLE = Control(NAME, "Measuring twice gives the same bytes.", _check, few=1)
