"""How benchmarks measure: processor seconds, so that other work on the machine does not decide a ratio."""

from __future__ import annotations

import time
from collections.abc import Callable


def clock(work: Callable[[], object], calls: int = 1) -> float:
    """Processor seconds of one call of ``work``, averaged over ``calls``."""
    start = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - start) / calls
