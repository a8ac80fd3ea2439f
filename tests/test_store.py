"""A run directory reads back what was written, byte for byte the same each time, and never half."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

import catenary.store as store
from catenary.errors import InvalidInput, MissingResource
from catenary.profile import Profile
from catenary.quantity import SCALAR_GRADIENT
from catenary.sample import Sample
from catenary.store import Curve, read_run, replacing, write_run, write_text
from catenary.validity import ValidityCard

CARD = ValidityCard(0.13, 896, 0.6, 0.02, None, ("trust it",), ("a=1",), ())


def curves() -> dict[str, Curve]:
    rng = np.random.default_rng(0)
    energy = rng.gamma(3.0, size=(2, 1, 2, 3, 2, 40))
    return {
        "predicted": Profile(
            np.geomspace(9, 1, 40), label="predicted <b>", average="expectation", card=CARD, provenance={"seed": 1}
        ),
        "untrained": Sample(
            energy, ("vanilla", "chunked"), (7,), SCALAR_GRADIENT, "untrained", False, {"nets": [0, 1]}
        ),
    }


def test_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    write_run(tmp_path, curves(), {"config": {"length": 40}})
    run = read_run(tmp_path / "result.json")
    assert list(run.curves) == ["predicted", "untrained"]
    profile, sample = run.curves["predicted"], run.curves["untrained"]
    assert isinstance(profile, Profile)
    assert isinstance(sample, Sample)
    before = curves()
    assert np.array_equal(profile.values, before["predicted"].values)  # type: ignore[union-attr]
    assert np.array_equal(sample.energy, before["untrained"].energy)  # type: ignore[union-attr]
    assert profile.card == CARD
    assert profile.label == "predicted <b>"
    assert profile.provenance == {"seed": 1}
    assert sample.quantity is SCALAR_GRADIENT
    assert (sample.conditions, sample.steps, sample.exact) == (("vanilla", "chunked"), (7,), False)
    assert run.result["config"] == {"length": 40}


def test_two_writes_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, curves(), {"config": {}})
    for name in ("result.json", "profiles.nc", "profile.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_netcdf_opens_with_xarray_alone(tmp_path: Path) -> None:
    import xarray

    write_run(tmp_path, curves(), {})
    with xarray.open_dataset(tmp_path / "profiles.nc", group="/sample/untrained", engine="h5netcdf") as data:
        assert dict(data["energy"].sizes) == {"condition": 2, "step": 1, "net": 2, "sequence": 3, "position": 40}
        assert list(data["condition"].to_numpy()) == ["vanilla", "chunked"]
        assert np.allclose(data["probe_variance"], curves()["untrained"].probe_variance)  # type: ignore[union-attr]


def test_csv_has_a_row_per_curve_condition_and_position(tmp_path: Path) -> None:
    write_run(tmp_path, curves(), {})
    rows = (tmp_path / "profile.csv").read_text().splitlines()
    assert rows[0].startswith("curve,condition,average,position,x,value")
    assert len(rows) == 1 + 40 * 3
    first = rows[1].split(",")
    assert float(first[5]) == 9.0
    assert first[3] == "0"


def test_failed_write_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")
    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("new")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_full_disk_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no space left .*run the same command again"), replacing(tmp_path / "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing")):
        with pytest.raises(InvalidInput, match=r"cannot write .*choose another --out"):
            write_run(folder, curves(), {})


def test_a_disk_that_fills_up_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InvalidInput, match="no space left"):
        write_run(tmp_path, curves(), {})
    with pytest.raises(InvalidInput, match="no space left"):
        store.write_array(tmp_path / "unit.npy", np.zeros(3))
    assert list(tmp_path.iterdir()) == []


def test_result_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "to_csv", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_run(tmp_path, curves(), {})
    assert not (tmp_path / "result.json").exists()
    with pytest.raises(MissingResource, match=r"result\.json is missing"):
        read_run(tmp_path)


def test_foreign_and_broken_results_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path, curves(), {})
    for text, message in (("{", "not JSON"), (json.dumps({"schema": 99}), "schema 1"), ("[]", "must hold an object")):
        (tmp_path / "result.json").write_text(text)
        with pytest.raises(InvalidInput, match=message):
            read_run(tmp_path)


def test_nan_never_reaches_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(tmp_path, curves(), {"config": {"x": float("nan")}})
    assert not (tmp_path / "result.json").exists()
