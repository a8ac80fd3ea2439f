"""How far the profile moves when rotary position coding is switched off."""

from __future__ import annotations

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject, shift
from catenary.errors import NotApplicable
from catenary.models.rope import rotary_buffers, rotary_tables
from catenary.models.twin import twin


def _check(subject: Subject) -> Check:
    module = subject.model.module
    if not rotary_buffers(module) and not rotary_tables(module):
        raise NotApplicable("this network has no rotary frequencies (inv_freq) that could be set to 0")
    if not subject.model.rope:
        raise NotApplicable("rotary position coding is off already")
    moved = shift(subject.norms, subject.profile(twin(subject.model, rope=False)))
    held = not moved.seen
    said = f"without RoPE the profile moves by {moved.words}"
    said += "" if held else ". Position coding is part of this profile; the birth law leaves it out"
    return judge(NAME, held, said, **moved.numbers)


NAME = "RoPE"
ROTARY = Control(NAME, "Rotary position coding has no part in the profile.", _check, profiles=1)
