"""Whether tokens influence the last one exactly as far back as the config's windows allow, and theory has it so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from catenary.architecture import Architecture
from catenary.architecture.attention import Attention
from catenary.architecture.kernels import Chunk, Kernel, Window
from catenary.architecture.layers import Branch, Layer
from catenary.architecture.recurrent import ShortConvolution
from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject
from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.prediction import predict


def farthest(architecture: Architecture, length: int) -> int:
    r"""The first position, from 0, that can influence the last one.

    Through layers from the last to the first, j becomes the smallest position that j sees: j - w + 1 in a window of w
    or a convolution of w taps, the beginning of j's chunk, 0 elsewhere. What lies between is in reach too. Exact;
    derived here. ``length`` is L >= 1.
    """
    position = length - 1
    for layer in reversed(architecture.layers):
        position = seen_by(layer, position)
    return position


def seen_by(layer: Layer, position: int) -> int:
    """The first position that ``position`` gets anything from in one layer."""
    for step in reversed(layer.steps):
        position = min((low for branch in step.branches for low in _lows(branch, position)), default=position)
    return position


def _lows(branch: Branch, position: int) -> Iterator[int]:
    mix = branch.mix
    if isinstance(mix, Attention):
        for group in mix.groups:
            yield _low(group.kernel, position)
    elif isinstance(mix, ShortConvolution):
        yield max(0, position - mix.taps + 1)
    else:
        yield position if type(mix).__name__ == "FeedForward" else 0


def _low(kernel: Kernel, position: int) -> int:
    if isinstance(kernel, Window):
        return max(0, position - kernel.width + 1)
    return position // kernel.width * kernel.width if isinstance(kernel, Chunk) else 0


def _check(subject: Subject) -> Check:
    try:
        architecture = subject.architecture
    except InvalidInput as error:
        raise NotApplicable(f"the config is not described, so its windows are not known: {error}") from error
    length = subject.windows.length
    first = farthest(architecture, length)
    reached = _first_reached(subject.norms)
    holes = int((subject.norms[:, reached:] == 0).any(axis=0).sum())
    wrong = [] if reached == first and not holes else [_wrong("the whole network", length - 1 - reached, holes)]
    tested = untested = 0
    for index in _kinds(architecture):
        low = seen_by(architecture.layers[index], length - 1)
        found = subject.profile(subject.model, subject.first_windows(1), source_layer=index, target_layer=index + 1)
        seen = _first_reached(found)
        within = int((found[:, seen:] == 0).any(axis=0).sum())
        if seen != low or within:
            wrong.append(_wrong(f"layer {index}, {length - 1 - low} tokens by its config", length - 1 - seen, within))
        tested += low > 0
        untested += low == 0 and _bounded(architecture.layers[index])
    theory = _theory(architecture, length)
    if theory is not None and theory != first:
        wrong.append(f"theory reaches {length - 1 - theory} tokens back")
    said = _words(length, first, tested, untested, theory)
    if wrong:
        said = f"by its config the last token is reached from {length - 1 - first} tokens back; " + "; ".join(wrong)
    return judge(
        NAME, not wrong, said, reach_by_config=length - 1 - first, reach_measured=length - 1 - reached, holes=holes,
        reach_in_theory=None if theory is None else length - 1 - theory, kinds_of_window_tested=tested,
    )  # fmt: skip


def _words(length: int, first: int, tested: int, untested: int, theory: int | None) -> str:
    if first > 0:
        said = f"influence is exactly 0 beyond {length - 1 - first} tokens back and positive up to there"
    else:
        said = f"all {length} tokens have influence on the last"
    said += ", in theory too" if theory is not None else ""
    if tested:
        said += f"; in single layers windows of {tested} kind(s) end where the config says"
    if untested:
        said += f"; {untested} kind(s) of window are longer than this context and not seen: give a larger --length"
    return said


def _wrong(what: str, reach: int, holes: int) -> str:
    return f"{what}: measured {reach} tokens back" + (f", {holes} of them without influence" if holes else "")


def _kinds(architecture: Architecture) -> list[int]:
    """The first layer of every kind that has a window somewhere."""
    first: dict[Layer, int] = {}
    for index, layer in enumerate(architecture.layers):
        first.setdefault(layer, index)
    return [index for layer, index in first.items() if _bounded(layer)]


def _bounded(layer: Layer) -> bool:
    """Whether a layer does not see all of a context that is long enough."""
    return seen_by(layer, 1 << 40) > 0


def _first_reached(norms: np.ndarray) -> int:
    return int(np.flatnonzero((norms > 0).any(axis=0))[0])


def _theory(architecture: Architecture, length: int) -> int | None:
    """The first position that the birth law lets influence the last, None where it does not cover the network."""
    try:
        return _first_reached(predict(architecture, length=length).values[None])
    except InvalidInput:
        return None


NAME = "window"
REACH = Control(NAME, "Influence reaches exactly as far back as the config's windows say.", _check, profiles=1, few=1)
