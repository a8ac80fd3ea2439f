"""Whether padding in front of a text, masked and not counted, changes the text's profile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import FEW, Subject, apart
from catenary.models.padding import INVISIBLE, padding_dependence

PADS = (1, 7)
TOLERANCE = 1e-5
"""Of norms in float32, relative to the window's largest: a wrong position id or mask gives 1e-2 and more."""


def _check(subject: Subject) -> Check:
    model = subject.exact
    seen = padding_dependence(model.module, model.anatomy)
    if not seen <= INVISIBLE:
        said = (
            f"three masked vectors in front change the stream of the text by {seen:.2g} (relative): measure windows of "
            "one length, without padding; padded ones are refused"
        )
        return judge(NAME, False, said, stream_change=seen)
    alone = subject.exact_norms
    windows = subject.first_windows(FEW)
    changed = {}
    for pads in PADS:
        filler = np.repeat(windows.ids[:, -1:], pads, axis=1)
        ids = np.concatenate([filler, windows.ids], axis=1)
        mask = np.ones_like(ids)
        mask[:, :pads] = 0
        changed[pads] = apart(subject.profile(model, replace(windows, ids=ids), attention_mask=mask), alone)
    worst = max(changed.values())
    each = " and ".join(f"{change:.1g} with {pads}" for pads, change in changed.items())
    said = f"norms of the real tokens change by at most {each} masked pads in front (of the largest, float32)"
    numbers = {f"change_{pads}_pads": change for pads, change in changed.items()}
    return judge(NAME, worst <= TOLERANCE, said, stream_change=seen, **numbers)


NAME = "padding"
PADDING = Control(NAME, "Padding in front, masked and left out of the position ids, changes nothing.", _check, few=2)
