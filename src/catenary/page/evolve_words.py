"""What an evolution shows, in sentences that claim no more than their intervals."""

from __future__ import annotations

from catenary.evolution import Evolution, Trace
from catenary.reading import Reading, number

UNITS = "dex"


def sentences(found: Evolution) -> list[str]:
    """Valley, floor, recency smear and joins, one sentence each; of the vanilla condition where there is one."""
    main = "vanilla" if "vanilla" in found.conditions else found.conditions[0]
    said = [_valley(found, main), _anchored(found, main), _floor(found, main), _smear(found, main)]
    joins = found.trace("chunked", "boundary")
    if joins is not None:
        said.append(_joins(joins, found.trace("vanilla", "boundary")))
    return said


def _valley(found: Evolution, condition: str) -> str:
    depth = _get(found, condition, "depth")
    word = _moved(depth.change, "deepens", "becomes shallower", "keeps its depth within the error")
    return f"The valley {word}: highest over lowest block {_ends(depth)}."


def _anchored(found: Evolution, condition: str) -> str:
    last, first = _get(found, condition, "last/mid"), _get(found, condition, "first/mid")
    word = _moved(last.change, "grows", "shrinks", "stays within the error")
    return f"The last token over the middle {word}: {_ends(last)}; the first over the middle {_ends(first)}."


def _floor(found: Evolution, condition: str) -> str:
    mid, share = _get(found, condition, "mid"), _get(found, condition, "floor share")
    return f"{rising(mid, 'The middle')}; {rising(share, 'the lowest block over the mean of the profile')}."


def rising(trace: Trace, name: str) -> str:
    """Whether a trace is ever above its first value, by its simultaneous interval."""
    top = trace.highest
    if top.low is None or top.high is None:
        where = f"is highest at step {trace.highest_step}, without an interval"
        return f"{name} changes by {_dex(trace.change)} and {where}"
    if top.low > 0:
        where = f"at step {trace.highest_step} (for all steps at once)"
        return f"{name} rises: {_dex(top)} {where}, {_dex(trace.change)} at the end"
    if trace.change.high is not None and trace.change.high < 0:
        return f"{name} does not rise at any step and falls, {_dex(trace.change)} at the end"
    return f"{name} does not rise at any step that can be told from noise; at the end {_dex(trace.change)}"


def _smear(found: Evolution, condition: str) -> str:
    ten, fifteen = _get(found, condition, "smear 10%"), _get(found, condition, "smear 15%")
    word = _moved(fifteen.change, "gains on", "loses on", "stays as it was against")
    return (
        f"The last 15 % of the context, without the last token, {word} the 15 % before: {_ends(fifteen)}; for 10 % "
        f"{_ends(ten)}."
    )


def _joins(trace: Trace, control: Trace | None) -> str:
    last = _level(trace, -1)
    beside = "" if control is None else f"; in single documents the same places show {_level(control, -1)}"
    spikes = trace.low is not None and bool(trace.low[-1] > 1) and bool((trace.change.low or 0) > 0)
    word = "appear" if spikes else "do not appear"
    said = f"a chunk's first token over its neighbours {_level(trace, 0)} before, {last} after"
    return f"Spikes at joins {word}: {said}{beside}."


def _get(found: Evolution, condition: str, name: str) -> Trace:
    trace = found.trace(condition, name)
    assert trace is not None, name
    return trace


def _moved(change: Reading, up: str, down: str, neither: str) -> str:
    if change.low is None or change.high is None:
        return f"{up if change.value > 0 else down} (no interval)"
    return up if change.low > 0 else down if change.high < 0 else neither


def _ends(trace: Trace) -> str:
    return f"{number(float(trace.values[0]))} to {number(float(trace.values[-1]))}, {_dex(trace.change)}"


def _dex(change: Reading) -> str:
    text = f"{change.value:+.3f} {UNITS}"
    return text if change.low is None or change.high is None else f"{text} [{change.low:+.3f}, {change.high:+.3f}]"


def _level(trace: Trace, index: int) -> str:
    value = number(float(trace.values[index]))
    if trace.low is None or trace.high is None:
        return value
    return f"{value} [{number(float(trace.low[index]))}, {number(float(trace.high[index]))}]"
