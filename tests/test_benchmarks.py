"""`make bench` runs every benchmark, each under its own heading."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_make_bench_runs_every_benchmark() -> None:
    """What make would run, without running it."""
    shown = subprocess.run(["make", "-n", "bench"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {f"benchmarks/{path.name}" for path in (ROOT / "benchmarks").glob("*.py")} - {"benchmarks/clock.py"}
    assert set(shown.split("for file in", 1)[1].split(";", 1)[0].split()) == names
    assert 'echo "== $file"' in shown
