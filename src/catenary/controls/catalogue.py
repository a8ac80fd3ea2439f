"""All controls, in the order in which they are run; the last looks at what the others left behind."""

from __future__ import annotations

from catenary.controls.bos_effect import BOS_EFFECT
from catenary.controls.causal import CAUSAL
from catenary.controls.control import Control
from catenary.controls.first_token import FIRST_TOKEN
from catenary.controls.implementation import ATTENTION, ATTENTION_MAPS
from catenary.controls.opening import OPENING
from catenary.controls.padding import PADDING
from catenary.controls.precision import PRECISION
from catenary.controls.reach import REACH
from catenary.controls.repeatable import REPEATABLE
from catenary.controls.rotary import ROTARY
from catenary.controls.seeds import SEEDS
from catenary.controls.untouched import UNTOUCHED

CONTROLS: tuple[Control, ...] = (
    OPENING, BOS_EFFECT, FIRST_TOKEN, PADDING, CAUSAL, REACH, ROTARY, PRECISION, ATTENTION, ATTENTION_MAPS, SEEDS,
    REPEATABLE, UNTOUCHED,
)  # fmt: skip
