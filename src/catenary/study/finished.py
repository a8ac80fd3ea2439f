"""Finished windows of a study beside `measure`: one file each, from which a killed run goes on.

As with units, a file's name carries a digest of everything that decides its numbers, so that one made under any other
setting is never mistaken for this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catenary.measure.keep import Keep, Numbers
from catenary.provenance import digest
from catenary.store import read_record, write_array, write_json
from catenary.study.units import fed_record
from catenary.text.windows import Windows


@dataclass(frozen=True)
class Finished:
    """Where finished windows of one network lie, and what decides its numbers; without a folder nothing is kept."""

    folder: Path | None
    identity: Mapping[str, Any]

    def windows(self, name: str, fed: Windows, **decides: Any) -> Keep:
        """Keeps one array for each batch of windows of one measurement; ``decides`` are its own settings."""

        def keep(rows: Sequence[int], make: Callable[[], Numbers]) -> Numbers:
            if self.folder is None:
                return make()
            key = digest({**self.identity, **fed_record(fed, rows), "measured": name, **decides})
            path = self.folder / "units" / f"{name}-{fed.kind}-window{rows[0]:05d}-{key}.npy"
            if not path.is_file():
                write_array(path, make())
            return np.asarray(np.load(path, allow_pickle=False))

        return keep

    def record(self, name: str, fed: Windows, make: Callable[[], Mapping[str, Any]], **decides: Any) -> dict[str, Any]:
        """Keeps one JSON object for all the windows of one measurement."""
        if self.folder is None:
            return dict(make())
        key = digest({**self.identity, **fed_record(fed, range(len(fed))), "measured": name, **decides})
        path = self.folder / "units" / f"{name}-{fed.kind}-{key}.json"
        if not path.is_file():
            write_json(path, make())
        return read_record(path)
