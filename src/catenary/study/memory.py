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
