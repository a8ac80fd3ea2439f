"""Shared test set-up: no network, and array annotations checked while tests run.

``--jaxtyping-packages`` in pyproject.toml has every function and dataclass of the whole package compare the arrays it
takes and gives with their annotations: kind of number, number of axes, and one size per axis name within a call.
``array_annotations.check`` says which annotations count; arrays assigned inside a function are not looked at.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "local"
        if host not in ("127.0.0.1", "::1", "localhost", "local"):
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    """The folder that scripts/fetch_demo.py made: CATENARY_DEMO, or .cache/demo in the checkout."""
    folder = Path(os.environ.get("CATENARY_DEMO") or Path(__file__).parent.parent / ".cache" / "demo")
    if not (folder / "fetched.json").is_file():
        pytest.skip(f"no demo model in {folder}; make it with: python scripts/fetch_demo.py {folder}")
    return folder


@pytest.fixture(scope="session")
def demo_tokenizer(demo_folder: Path) -> Any:
    """The demo model's tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(demo_folder / "smollm2-135m")
