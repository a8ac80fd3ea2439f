"""What a BOS in front of the same text does to the profile of the text."""

from __future__ import annotations

import numpy as np

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject, shift
from catenary.errors import NotApplicable
from catenary.text.vanilla import vanilla_windows


def _check(subject: Subject) -> Check:
    tokenizer, documents = subject.tokenizer, subject.documents
    if tokenizer is None or documents is None:
        raise NotApplicable(subject.no_tokenizer)
    if tokenizer.bos_token_id is None:
        raise NotApplicable("the tokenizer has no BOS token")
    length, count = subject.windows.length, len(subject.windows)
    bare = vanilla_windows(documents, tokenizer, length=length - 1, count=count, seed=subject.seed, bos="none")
    opened = vanilla_windows(documents, tokenizer, length=length, count=count, seed=subject.seed, bos="one")
    assert np.array_equal(opened.ids[:, 1:], bare.ids)
    without = subject.profile(subject.model, bare)
    behind = subject.profile(subject.model, opened)
    moved = shift(without, behind[:, 1:])
    first = float(np.log10(behind[:, 1] / without[:, 0]).mean())
    own = float(np.log10(behind[:, 0] / np.median(behind[:, 1:], axis=1)).mean())
    held = not moved.seen
    said = f"a BOS in front of the same text moves its first token by {first:+.2g} dex and its profile by {moved.words}"
    said += f". The BOS itself has {10**own:.2g} times the median norm of the text"
    said += "" if held else ". Say which --bos a profile was measured with, and compare only equal ones"
    return judge(NAME, held, said, **moved.numbers, first_token_dex=first, bos_over_median_dex=own)


NAME = "BOS effect"
BOS_EFFECT = Control(NAME, "A BOS in front leaves the profile of the text as it is.", _check, profiles=2)
