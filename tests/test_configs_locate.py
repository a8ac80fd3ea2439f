"""Where a config is found, in which order, and what is said when it is not: offline, gated, empty, misspelt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from catenary.configs import hub
from catenary.configs.locate import locate_config
from catenary.configs.presets import list_presets, load_preset
from catenary.errors import InvalidInput, MissingResource

CONFIG = dict(load_preset("toy").config)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a hub cache with nothing in them."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    return cache


def one_line(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text
    return text


def write(folder: Path, config: dict[str, Any], name: str = "config.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def cached_config(cache: Path, repo: str, config: dict[str, Any], commit: str = "a" * 40) -> None:
    """Lay ``config`` down as huggingface_hub keeps a download."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    write(folder / "snapshots" / commit, config)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)


def test_mapping() -> None:
    located = locate_config({**CONFIG, "_name_or_path": "some/one"})
    assert (located.kind, located.name, located.folder) == ("dict", "some/one", None)
    assert locate_config(CONFIG).name == "llama"


@pytest.mark.parametrize("convert", [str, Path])
def test_folder_and_file(tmp_path: Path, convert: Any) -> None:
    path = write(tmp_path / "my-model", CONFIG)
    for model in (path, path.parent):
        located = locate_config(convert(model))
        assert (located.kind, located.name, located.folder) == ("path", "my-model", path.parent)
        assert located.source == str(path)
        assert located.config == CONFIG
    other = write(tmp_path, CONFIG, "variant.json")
    located = locate_config(convert(other))
    assert (located.name, located.folder) == ("variant", None)


def test_a_linked_config_keeps_its_folder_name(tmp_path: Path) -> None:
    """Snapshots of the hub cache are links to blobs; the folder of the link names the model."""
    blob = write(tmp_path / "blobs", CONFIG, "0123")
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").symlink_to(blob)
    located = locate_config(tmp_path / "my-model")
    assert (located.name, located.folder) == ("my-model", tmp_path / "my-model")


def test_path_comes_before_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "gpt2", CONFIG)
    monkeypatch.chdir(tmp_path)
    assert locate_config("gpt2").kind == "path"
    assert locate_config("preset:gpt2").kind == "preset"
    (tmp_path / "gpt2" / "config.json").rename(tmp_path / "gpt2" / "weights.bin")
    with pytest.raises(MissingResource, match=r"it holds weights.bin; write preset:gpt2 for the preset"):
        locate_config("gpt2")


def test_folder_without_config_says_what_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=r"no config.json in folder .*; it is empty"):
        locate_config(tmp_path)
    for index in range(10):
        (tmp_path / f"file{index}").touch()
    with pytest.raises(MissingResource, match=r"it holds file0, .*file7 and 2 more"):
        locate_config(str(tmp_path))


@pytest.mark.parametrize("model", ["./nothing", "/nowhere/at/all", "~/nothing", "nothing.json", "a/b/c"])
def test_missing_path(model: str) -> None:
    with pytest.raises(MissingResource, match="no file or folder") as caught:
        locate_config(model)
    assert model in one_line(caught.value)


@pytest.mark.parametrize("model", ["", "  ", "a\nb", "nul\0byte", "a b", "-", "x" * 5000, "gpt2\ud800"])
def test_text_that_names_nothing(model: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        locate_config(model)
    assert len(one_line(caught.value)) < 2000


@pytest.mark.parametrize("model", [None, 3, 1.5, b"gpt2", ["gpt2"]])
def test_other_types(model: Any) -> None:
    with pytest.raises(InvalidInput, match="model must be a path, a preset, a hub id or a mapping"):
        locate_config(model)


def test_presets_in_any_case() -> None:
    located = locate_config("Qwen2-0.5B")
    assert (located.kind, located.name) == ("preset", "qwen2-0.5b")
    assert located.source == "preset qwen2-0.5b (values of Qwen/Qwen2-0.5B)"
    with pytest.raises(InvalidInput, match=r"unknown preset 'qwen2-05b'. Did you mean 'qwen2-0.5b'\?"):
        locate_config("preset:qwen2-05b")


def test_misspelt_preset_offline(empty_cache: Path) -> None:
    with pytest.raises(MissingResource) as caught:
        locate_config("qwen2-05b")
    text = one_line(caught.value)
    assert "did you mean 'qwen2-0.5b'?" in text
    assert str(empty_cache) in text
    assert "HF_HUB_OFFLINE" in text
    assert all(name in text for name in list_presets())


def test_hub_id_of_a_preset_offline(empty_cache: Path) -> None:
    located = locate_config("qwen/qwen2-0.5b")
    assert (located.kind, located.name) == ("preset", "qwen2-0.5b")
    assert located.source.endswith("since the hub cannot be reached")
    assert locate_config("HuggingFaceTB/SmolLM2-135M-Instruct").name == "smollm2-135m"
    with pytest.raises(MissingResource):
        locate_config("hub:Qwen/Qwen2-0.5B")
    with pytest.raises(MissingResource, match="at revision 'abc'"):
        locate_config("Qwen/Qwen2-0.5B", revision="abc")


def test_cache_comes_before_the_preset_of_that_id(empty_cache: Path) -> None:
    cached_config(empty_cache, "Qwen/Qwen2-0.5B", CONFIG)
    for model in ("Qwen/Qwen2-0.5B", "hub:Qwen/Qwen2-0.5B"):
        located = locate_config(model)
        assert (located.kind, located.name, located.config) == ("hub", "Qwen/Qwen2-0.5B", CONFIG)
        assert located.source == f"hub Qwen/Qwen2-0.5B, commit {'a' * 40}"
        assert located.folder is not None
        assert (located.folder / "config.json").exists()


def test_revision_belongs_to_hub_ids(tmp_path: Path) -> None:
    for model in (CONFIG, "gpt2", write(tmp_path, CONFIG)):
        with pytest.raises(InvalidInput, match="revision applies to hub ids"):
            locate_config(model, revision="main")


def response_error(kind: type[Exception]) -> Exception:
    """An error as huggingface_hub raises it, without its response."""
    error = kind.__new__(kind)
    error.args = ("first line\nsecond line",)
    return error


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (errors.GatedRepoError, ["is gated", "HF_TOKEN", "hf auth login", "https://huggingface.co/owner/name"]),
        (errors.RepositoryNotFoundError, ["not on the hub", "private", "HF_TOKEN"]),
        (errors.RevisionNotFoundError, ["at revision 'v9'", "no such revision"]),
        (errors.EntryNotFoundError, ["has no config.json"]),
        (errors.OfflineModeIsEnabled, ["HF_HUB_OFFLINE is set"]),
        (errors.LocalEntryNotFoundError, ["no connection to"]),
        (errors.HfHubHTTPError, ["did not answer", "HfHubHTTPError"]),
        (ConnectionError, ["did not answer", "ConnectionError"]),
    ],
)
def test_what_the_hub_can_say(
    kind: type[Exception], words: list[str], empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise response_error(kind)

    monkeypatch.setattr(hub, "_ask", refuse)
    with pytest.raises(MissingResource) as caught:
        locate_config("owner/name", revision="v9")
    text = one_line(caught.value)
    for word in words:
        assert word in text


def test_only_an_unreachable_hub_lets_a_preset_stand_in(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gated(*_: object, **__: object) -> None:
        raise response_error(errors.GatedRepoError)

    monkeypatch.setattr(hub, "_ask", gated)
    with pytest.raises(MissingResource, match=r"is gated.*did you mean 'llama-3-8b'\?"):
        locate_config("meta-llama/Meta-Llama-3-8B")


def test_a_fresh_process_offline_with_nothing_in_its_home(tmp_path: Path) -> None:
    """Sockets blocked, HF_HUB_OFFLINE=1, empty HOME and cache: presets work, a missing model is one clean line."""
    code = """
import socket
def blocked(*_): raise AssertionError("a connection was tried")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = blocked
import catenary
print(catenary.read_config("gpt2").depth, catenary.read_config("Qwen/Qwen2-0.5B").depth)
try:
    catenary.read_config("nobody/nothing")
except catenary.MissingResource as error:
    print(error)
"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    depths, message = done.stdout.strip().split("\n")
    assert depths == "12 24"
    assert message.startswith("hub id 'nobody/nothing' is not in the Hugging Face cache")
    assert str(tmp_path) in message
    assert done.stderr == ""
