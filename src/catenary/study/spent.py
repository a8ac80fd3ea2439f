"""What a run took, in processor seconds and peak resident memory, beside what was estimated for it."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from catenary.study.plan import Estimate

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


class Meter:
    """Measures from its creation on. Time is the processor's, own and finished children's, not the clock's.

    Other programs on the machine lengthen the clock's time and leave the processor's nearly as it is. Memory is the
    peak of this process since the meter was made, or since it started where the system cannot reset the mark.
    """

    def __init__(self, device: str = "cpu") -> None:
        """Start: note the times, and forget earlier peaks where that is possible.

        Raises:
            MissingResource: no such device here.
        """
        self._started, self._processor, self._device = time.time(), processor_seconds(), device
        with suppress(OSError):
            _CLEAR.write_text("5")  # proc_pid_clear_refs(5): the peak is counted anew
        if device.startswith("cuda"):
            import torch

            from catenary.models.device import find_device

            torch.cuda.reset_peak_memory_stats(find_device(device))

    @property
    def seconds(self) -> float:
        """Processor seconds since the meter was made."""
        return processor_seconds() - self._processor

    @property
    def peak(self) -> int:
        """Peak bytes since the meter was made."""
        return peak_bytes(self._device)

    def record(
        self, estimated: Estimate, *, share: float | None = None, seconds: float | None = None, peak: int | None = None
    ) -> dict[str, Any]:
        """Plain JSON values for ``run.json``.

        ``share`` is the part of the estimated work that was left to do; ``seconds`` and ``peak`` are what workers
        took, where the work was theirs.
        """
        seconds, peak = seconds or self.seconds, peak or self.peak
        cost: dict[str, Any] = {
            "estimated": {"processor_seconds": round(estimated.seconds, 2), "peak_bytes": int(estimated.bytes)},
            "actual": {"processor_seconds": round(seconds, 2), "peak_bytes": peak},
        }
        if share is not None:
            cost["share_measured_now"] = round(share, 4)
        return {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            "seconds": round(time.time() - self._started, 1),
            "cost": cost,
            "host": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
        }


def processor_seconds() -> float:
    """Seconds of processor time of this process, all its threads, and its finished children.

    Its own to the nanosecond: units of a few milliseconds are below the hundredths that ``os.times`` counts in.
    """
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def peak_bytes(device: str) -> int:
    """Peak memory: of this process on the CPU, of torch's allocator on an accelerator of CUDA's kind."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    try:
        lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="ascii").splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
