"""How much memory a device has to spare."""

from __future__ import annotations

import os


def free_memory(device: str) -> float:
    """Bytes free on ``device``: what the system would give without swapping, or what the accelerator reports."""
    if device.split(":")[0] == "cuda":
        from catenary.models.device import find_device
        from catenary.models.extra import torch

        return float(torch.cuda.mem_get_info(find_device(device))[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            table = dict(line.split(":", 1) for line in lines)
        return float(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def resident_memory() -> float:
    """Bytes of this process that are in memory now; the most there ever were, where the system tells no more."""
    try:
        with open("/proc/self/statm", encoding="ascii") as line:
            return float(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        from catenary.study.spent import peak_bytes

        return float(peak_bytes("cpu"))


def usable_memory(device: str) -> float:
    """Bytes this process may come to in all: what is free on ``device``, and what it holds of it already."""
    return free_memory(device) + (resident_memory() if device.startswith("cpu") else 0.0)
