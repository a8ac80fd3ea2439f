"""One run is one directory: what is in it, written so that a killed process leaves no half-written file.

    result.json   schema version, config, provenance, every curve's shape, comparisons; no clock, no host
    profiles.nc   every curve: one netCDF group per Profile (/profile/NAME) or Sample (/sample/NAME)
    profile.csv   one row per curve, condition and position
    run.json      times, host, memory: everything that differs between two runs of the same config
    units/        one file per finished unit of measurement, from which a killed run resumes
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.profile import Profile
from catenary.provenance import canonical_json
from catenary.quantity import QUANTITIES
from catenary.sample import Sample
from catenary.shape import default_average
from catenary.validity import ValidityCard

if TYPE_CHECKING:
    import xarray

SCHEMA = 1
Curve = Profile | Sample


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that replaces it when the block ends well, and vanishes otherwise."""
    make_folder(path.parent)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise _unwritable(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it; raises ``InvalidInput`` where that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InvalidInput(
            f"no space left while writing {path}; nothing was overwritten and what was finished is kept: "
            "free some space and run the same command again"
        )
    return InvalidInput(f"cannot write {path}: {error.strerror or error}; choose another --out")


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically, with ``\\n`` line ends on every system."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write canonical, indented JSON atomically."""
    write_text(path, canonical_json(value, indent=1) + "\n")


def write_array(path: Path, array: Float64[np.ndarray, "*shape"]) -> None:
    """Write one array as ``.npy`` atomically."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    write_bytes(path, out.getvalue())


@dataclass(frozen=True)
class Run:
    """A finished run read back: its curves by name, in stored order, and its ``result.json``."""

    folder: Path
    curves: Mapping[str, Curve]
    result: Mapping[str, Any] = field(default_factory=dict)


def write_run(folder: Path, curves: Mapping[str, Curve], result: Mapping[str, Any]) -> None:
    """Write ``profiles.nc``, ``profile.csv`` and, last, ``result.json``: its presence says the run is complete."""
    if not curves:
        raise invalid("curves", "must hold at least one profile or sample", "none")
    write_bytes(folder / "profiles.nc", _netcdf(curves))
    write_text(folder / "profile.csv", to_csv(curves))
    index = [{"name": name, **_header(curve)} for name, curve in curves.items()]
    write_json(folder / "result.json", {"schema": SCHEMA, **result, "curves": index})


def read_run(folder: str | Path) -> Run:
    """Read a run directory (or its ``result.json``) back; raises ``MissingResource`` where it is no complete run."""
    folder = Path(folder)
    folder = folder.parent if folder.name == "result.json" else folder
    path = folder / "result.json"
    if not path.is_file():
        there = sorted(p.name for p in folder.iterdir())[:8] if folder.is_dir() else "no such folder"
        raise MissingResource(f"no finished run in {folder}: result.json is missing (found: {there})")
    result = read_record(path)
    if result.get("schema") != SCHEMA:
        raise invalid("result.json", f"must have schema {SCHEMA}", result.get("schema"), _ANOTHER)
    return Run(folder, _read_netcdf(folder / "profiles.nc", result["curves"]), result)


_ANOTHER = "it was written by another version"


def read_record(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; raises ``InvalidInput`` where it holds anything else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}; remove it and run the same command again") from error
    if not isinstance(record, dict):
        raise invalid(path.name, "must hold an object", type(record).__name__, _ANOTHER)
    return record


def to_csv(curves: Mapping[str, Curve]) -> str:
    """Every curve, one row per position (from 0): value, standard error, p16 and p84, and how it was averaged."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["curve", "condition", "average", "position", "x", "value", "standard_error", "p16", "p84"])
    for name, condition, profile in each_profile(curves):
        columns = (profile.values, profile.standard_error, profile.low, profile.high)
        for j, x in enumerate(profile.positions):
            cells = ["" if column is None else repr(float(column[j])) for column in columns]
            writer.writerow([name, condition, profile.average, j, repr(float(x)), *cells])
    return out.getvalue()


def records_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV with a heading line; a column for every name, in the order of first appearance."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def each_profile(curves: Mapping[str, Curve]) -> Iterator[tuple[str, str, Profile]]:
    """Every (name, condition, profile): a Sample gives one per condition at its last step, by its default average."""
    for name, curve in curves.items():
        if isinstance(curve, Profile):
            yield name, str(curve.provenance.get("condition", "")), curve
        else:
            for condition in curve.conditions:
                yield name, condition, curve.profile(default_average(curve), condition, curve.steps[-1])


def _header(curve: Curve) -> dict[str, Any]:
    kind = "profile" if isinstance(curve, Profile) else "sample"
    card = curve.card.to_dict() if isinstance(curve, Profile) and curve.card else None
    average = curve.average if isinstance(curve, Profile) else None
    return {
        "kind": kind, "label": curve.label, "quantity": curve.quantity.name, "length": curve.length,
        "average": average, "card": card, "provenance": dict(curve.provenance),
    }  # fmt: skip


def _netcdf(curves: Mapping[str, Curve]) -> bytes:
    """The file's bytes, made in memory: the HDF5 library does not survive a disk that fills up while it writes."""
    import xarray

    groups = {
        f"/profile/{name}" if isinstance(curve, Profile) else f"/sample/{name}": (
            _profile_dataset(curve) if isinstance(curve, Profile) else curve.to_dataset()
        )
        for name, curve in curves.items()
    }
    return bytes(xarray.DataTree.from_dict(groups).to_netcdf(engine="h5netcdf"))


def _profile_dataset(profile: Profile) -> xarray.Dataset:
    import xarray

    data = xarray.Dataset(coords={"position": np.arange(profile.length), "x": ("position", profile.positions)})
    for name in ("values", "standard_error", "low", "high"):
        array = getattr(profile, name)
        if array is not None:
            data[name] = ("position", array)
    return data


def _read_netcdf(path: Path, index: list[dict[str, Any]]) -> dict[str, Curve]:
    import xarray

    if not path.is_file():
        raise MissingResource(f"{path} is missing although result.json is there; run the same command again")
    curves: dict[str, Curve] = {}
    for entry in index:
        group = f"/{entry['kind']}/{entry['name']}"
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as data:
            curves[entry["name"]] = _READERS[entry["kind"]](data.load(), entry)
    return curves


def _read_sample(data: xarray.Dataset, entry: Mapping[str, Any]) -> Sample:
    return Sample.from_dataset(data, entry["provenance"])


def _read_profile(data: xarray.Dataset, entry: Mapping[str, Any]) -> Profile:
    card = entry["card"] and {k: tuple(v) if isinstance(v, list) else v for k, v in entry["card"].items()}
    arrays = {name: data[name].to_numpy() for name in ("standard_error", "low", "high") if name in data}
    return Profile(
        data["values"].to_numpy(),
        QUANTITIES[entry["quantity"]],
        entry["label"],
        entry["average"],
        **arrays,
        card=None if card is None else ValidityCard(**card),
        provenance=entry["provenance"],
    )


_READERS: Mapping[str, Callable[[xarray.Dataset, Mapping[str, Any]], Curve]] = {
    "profile": _read_profile,
    "sample": _read_sample,
}
