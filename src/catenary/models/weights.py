"""Where pretrained weights lie, and that they are safe to read: safetensors, complete, no pickle."""

from __future__ import annotations

import json
from pathlib import Path

from catenary.errors import InvalidInput, MissingResource

PICKLE = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
HEADER_LIMIT = 100_000_000
"""Bytes of the longest header the safetensors format allows."""

WANTED = ["*.json", "model*.safetensors", "*.model", "*.txt", "*.jinja"]
"""What is fetched from the hub: configuration, tokenizer and the weights in transformers' own naming."""


def weights_folder(source: str | Path, *, revision: str | None, trust_remote_code: bool) -> tuple[Path, str | None]:
    """A local folder with safetensors weights, and the resolved revision if it came from the hub.

    Raises:
        InvalidInput: when the weights are only there as pickle, or the folder is an adapter.
        MissingResource: when nothing is found; the message says what was looked for and where.
    """
    folder = Path(source)
    resolved = None
    if not folder.is_dir():
        folder, resolved = _fetch(str(source), revision, trust_remote_code)
    _check(folder, str(source))
    return folder, resolved


def _check(folder: Path, source: str) -> None:
    if (folder / "adapter_config.json").exists():
        raise InvalidInput(
            f"model must be a whole network, got an adapter in {source!r}; merge it into its base model first "
            "(peft: merge_and_unload, save_pretrained) and give the merged folder"
        )
    for file in sorted(folder.glob("model*.safetensors")):
        _check_file(file)
    index = folder / "model.safetensors.index.json"
    if index.exists():
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        missing = [shard for shard in shards if not (folder / shard).exists()]
        if missing:
            raise MissingResource(f"{len(missing)} of {len(shards)} weight files are missing in {folder}: {missing[0]}")
        return
    if (folder / "model.safetensors").exists():
        return
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLE)
    if pickles:
        raise _pickle(source, pickles[0])
    raise MissingResource(f"no weights for {source!r}: looked for model.safetensors in {folder}")


def _check_file(file: Path) -> None:
    """Refuse a safetensors file that is cut off or no safetensors: its header says how long it must be."""
    with file.open("rb") as data:
        size = int.from_bytes(data.read(8), "little")
        if 0 < size < HEADER_LIMIT:
            try:
                header = json.loads(data.read(size))
                ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
                if file.stat().st_size == 8 + size + max(ends, default=0):
                    return
            except (ValueError, KeyError, IndexError, TypeError, AttributeError):
                pass
    raise InvalidInput(f"weights must be whole safetensors files, and {file} is damaged or cut off; fetch it again")


def _pickle(source: str, name: str) -> InvalidInput:
    return InvalidInput(
        f"weights must be safetensors, got {name!r} in {source!r}; pickle files can run code when they are read. "
        "Convert them where you trust them: model.save_pretrained(folder) writes safetensors"
    )


def _fetch(repository: str, revision: str | None, trust_remote_code: bool) -> tuple[Path, str]:
    import huggingface_hub
    from huggingface_hub import errors

    patterns = [*WANTED, "*.py"] if trust_remote_code else WANTED
    try:
        folder = Path(huggingface_hub.snapshot_download(repository, revision=revision, allow_patterns=patterns))
    except errors.GatedRepoError as error:
        raise MissingResource(
            f"{repository!r} is gated: accept its terms at https://huggingface.co/{repository} and set HF_TOKEN"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise MissingResource(
            f"no model {repository!r}: no such folder here and no such (or a private) repository on the hub; "
            "set HF_TOKEN for a private one"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise MissingResource(f"{repository!r} has no revision {revision!r}") from error
    except errors.HFValidationError as error:
        raise MissingResource(f"no model {repository!r}: no such folder here, and it is not a hub id") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise MissingResource(
            f"no model {repository!r}: no such folder here, not in the local hub cache "
            f"({huggingface_hub.constants.HF_HUB_CACHE}), and the hub cannot be reached"
        ) from error
    if not (folder / "model.safetensors").exists() and not list(folder.glob("model*.safetensors")):
        pickles = [name for name in _listing(repository, revision) if name.endswith(PICKLE)]
        if pickles:
            raise _pickle(repository, pickles[0])
    return folder, folder.name


def _listing(repository: str, revision: str | None) -> list[str]:
    """File names of a repository, empty when the hub cannot be asked (only to word an error better)."""
    import huggingface_hub

    try:
        return sorted(huggingface_hub.list_repo_files(repository, revision=revision))
    except (OSError, ValueError):
        return []
