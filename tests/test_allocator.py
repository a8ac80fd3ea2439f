"""Freed blocks go back to the system once the size from which they are mapped is fixed."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is glibc's")

SCRIPT = """
import sys
import numpy as np
from catenary.models.allocator import release_freed_blocks

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

if sys.argv[1] == "fixed" and not release_freed_blocks():
    sys.exit(3)
large = np.ones(30 * 2**17)  # freeing 30 MiB raises glibc's size to it
del large
before = resident()
blocks = [np.ones(2**16) for _ in range(200)]  # 512 KiB each
blocks = blocks[-1:]  # the last one pins the heap's end
print((resident() - before) / 2**20)
"""


def left(how: str) -> float:
    """MiB that stay resident after 99.5 of 100 MiB were freed, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc")
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_freed_blocks_leave_the_process() -> None:
    assert left("fixed") < 5
    assert left("as it is") > 90
