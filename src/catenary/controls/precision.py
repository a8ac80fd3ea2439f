"""What a coarser dtype does to the profile: bfloat16 against float32."""

from __future__ import annotations

import numpy as np

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject, shift
from catenary.models.extra import torch
from catenary.models.twin import twin
from catenary.verdict import BOUND


def _check(subject: Subject) -> Check:
    model = subject.model
    other = torch.bfloat16 if model.dtype in (torch.float32, torch.float64) else torch.float32
    changed = subject.profile(twin(model, dtype=other))
    reached = (subject.norms > 0) & (changed > 0)
    tokens = np.abs(np.log10(changed[reached] / subject.norms[reached]))
    median, ninth = float(np.median(tokens)), float(np.quantile(tokens, 0.9))
    moved = shift(subject.norms, changed)
    names = " against ".join(str(kind).removeprefix("torch.") for kind in (other, model.dtype))
    said = f"{names}: a token's norm changes by {median:.2g} dex (median; 9 of 10 below {ninth:.2g}), blocks by "
    said += f"{moved.median:.2g}; noise between windows {moved.noise:.2g} dex"
    held = median <= BOUND
    said += "" if held else ". Measure in float32"
    return judge(NAME, held, said, token_median_dex=median, token_90_percent_dex=ninth, **moved.numbers)


NAME = "dtype"
PRECISION = Control(NAME, "bfloat16 and float32 give the same profile.", _check, profiles=1)
