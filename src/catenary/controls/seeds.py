"""How much the profile of an untrained network depends on the seed of its weights."""

from __future__ import annotations

import warnings

import numpy as np

from catenary.blocks import Blocks
from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject
from catenary.models.load import ATTENTION, load
from catenary.text.synthetic import random_windows
from catenary.verdict import BOUND

NETWORKS = 3
VOCABULARY = 16
"""Rows of the networks' embeddings: only vectors are fed, and more rows would only take time to draw."""


def _check(subject: Subject) -> Check:
    model, windows = subject.model, random_windows(subject.windows.length, len(subject.windows), subject.seed)
    attention = model.attention if model.attention in ATTENTION else "eager"
    blocks, means, errors = Blocks(windows.length), [], []
    for net in range(NETWORKS):
        with warnings.catch_warnings():  # notes on dead parts are the same for every seed, and said elsewhere
            warnings.simplefilter("ignore")
            drawn = load(
                dict(model.config), seed=subject.seed + net, device=str(model.device), attention=attention,
                vocabulary=VOCABULARY,
            )  # fmt: skip
        rows = blocks.log_means(subject.profile(drawn, windows))
        means.append(rows.mean(axis=0))
        errors.append(rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))
    spread = np.std(means, axis=0, ddof=1)
    median, largest, noise = float(np.median(spread)), float(spread.max()), float(np.median(errors))
    said = (
        f"block log-means of {NETWORKS} untrained networks scatter by {median:.2g} dex (standard deviation, median "
        f"over blocks, largest {largest:.2g}); noise between windows {noise:.2g} dex"
    )
    held = median <= max(BOUND, 2 * noise)
    said += "" if held else ". One untrained network does not stand for all: average over several (--nets)"
    numbers = {"median_dex": median, "largest_dex": largest, "noise_dex": noise}
    return judge(NAME, held, said, networks=NETWORKS, **numbers)


NAME = "seeds"
SEEDS = Control(NAME, "Untrained networks of this config have one profile.", _check, profiles=3, networks=NETWORKS)
