"""Whether the network is as it was handed over, after all that was done to it."""

from __future__ import annotations

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.state import changes, state_of
from catenary.controls.subject import Subject

SHOWN = 3


def _check(subject: Subject) -> Check:
    model = subject.model.module
    different = changes(subject.before, state_of(model))
    devices = sorted({str(part.device) for part in model.parameters()})
    dtypes = sorted({str(part.dtype).removeprefix("torch.") for part in model.parameters()})
    said = (
        f"after all checks devices ({', '.join(devices)}), dtypes ({', '.join(dtypes)}), bytes, gradient and training "
        "flags, hooks and attention implementation are as before"
    )
    if different:
        more = f" and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
        said = f"after all checks these differ: {'; '.join(different[:SHOWN])}{more}"
    return judge(NAME, not different, said, changed=len(different))


NAME = "untouched"
UNTOUCHED = Control(NAME, "Measuring moves, casts and changes nothing of the network.", _check)
