"""Draw the pictures of the gallery and of the theory pages into docs/img/gallery; nothing else is written.

``python scripts/draw_gallery.py`` draws all that need no model; ``--only NAME`` one of them; ``--list`` says what there
is. ``--demo FOLDER`` (from ``scripts/fetch_demo.py --facts``) draws those of the demo model too; retrieval takes it
half an hour. Every picture comes either from a command, which docs/gallery.md prints as it stands here, or from a
function of ``theory_pictures.py``. Pictures in docs/ledger are written by ``catenary reproduce`` and not here.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import theory_pictures
from byte_tokenizer import write_tokenizer

DOCS = Path(__file__).parent.parent / "docs"
GALLERY = DOCS / "img" / "gallery"
LARGEST = 150_000
"""Bytes: a page of pictures stays light."""


@dataclass(frozen=True)
class Run:
    """Commands, one after the other, and which figures of theirs become which pictures.

    Attributes:
        commands: as a reader would type them; they write below ``out/``.
        pictures: figure below ``out/``, and the picture's name.
        demo: whether they need the demo model, as ``smollm2-135m``.
    """

    commands: tuple[str, ...]
    pictures: Mapping[str, str] = field(default_factory=dict)
    demo: bool = False


RUNS: Mapping[str, Run] = {
    "predict": Run(
        ("catenary predict gpt2 --length 256 --out out/gpt2",),
        {"gpt2/figures/profile.svg": "predict.svg", "gpt2/figures/profile-last.svg": "predict-last.svg"},
    ),
    "what-if": Run(
        ("catenary predict gpt2 --length 256 --vary num_hidden_layers=6:24:6 --out out/depth",),
        {"depth/figures/profile.svg": "what-if.svg", "depth/figures/variation.svg": "what-if-trend.svg"},
    ),
    "spread": Run(
        ("catenary predict toy --length 128 --quantiles --networks 12 --out out/spread",),
        {"spread/figures/profile.svg": "spread.svg"},
    ),
    "atlas": Run(
        ("catenary atlas gpt2 qwen2-0.5b mistral-7b-v0.3 bloom-560m gpt-oss-120b gemma-2-2b --length 512 --no-knobs "
         "--out out/atlas",),
        {"atlas/sparklines.svg": "atlas.svg"},
    ),
    "toy": Run(
        ("catenary profile toy --length 128 --conditions zipf --check-nets 2 --check-sequences 2 --probes 4 "
         "--out out/toy",),
        {"toy/figures/profile.svg": "profile.svg", "toy/figures/ratio-1.svg": "ratio.svg"},
    ),
    "strengths": Run(
        ("catenary strengths toy --length 64 --nets 2 --windows 2 --out out/strengths",),
        {"strengths/figures/attention.svg": "strengths.svg"},
    ),
    "pathways": Run(
        ("catenary pathways toy --length 64 --windows 2 --out out/pathways",),
        {"pathways/figures/terms.svg": "pathways-terms.svg", "pathways/figures/paths.svg": "pathways-paths.svg"},
    ),
    "rollout": Run(
        ("catenary rollout toy --length 64 --windows 4 --out out/rollout",),
        {"rollout/figures/rollout.svg": "rollout.svg", "rollout/figures/sink.svg": "rollout-sink.svg",
         "rollout/figures/diagonal.svg": "rollout-diagonal.svg"},
    ),
    "boundaries": Run(
        ("catenary measure smollm2-135m --weights pretrained --tokens chunked,vanilla --length 256 --chunk 32 "
         "--windows 8 --probes 1 --out out/joins",
         "catenary boundaries out/joins"),
        {"joins/figures/alignments.svg": "boundaries.svg", "joins/figures/inside.svg": "boundaries-inside.svg"},
        demo=True,
    ),
    "evolve": Run(
        ("catenary evolve toy --tokenizer tokenizer --length 64 --chunk 16 --steps 40 --every 8 --sequences 6 "
         "--out out/evolve",),
        {"evolve/figures/map-vanilla.svg": "evolve-map.svg", "evolve/figures/valley.svg": "evolve-valley.svg"},
    ),
    "retrieve": Run(
        ("catenary retrieve smollm2-135m --task facts --samples 60 --link 30 --chat off --out out/retrieve",
         "catenary order out/retrieve/outcomes.json --out out/order"),
        {"retrieve/figures/logp.svg": "retrieval.svg", "retrieve/figures/link.svg": "link.svg",
         "order/figures/slots.svg": "order-slots.svg", "order/figures/gains.svg": "order-gains.svg"},
        demo=True,
    ),
    "kinetic profile": Run(
        ("catenary kinetic profile --lam 5 --time 1 --time 3 --time 5 --out out/kinetic-profile",),
        {"kinetic-profile/figures/profile.svg": "kinetic-profile.svg"},
    ),
    "kinetic phase": Run(
        ("catenary kinetic phase --beta 1 --cells 24 --out out/phase",),
        {"phase/figures/phase.svg": "kinetic-phase.svg"},
    ),
    "kinetic simulate": Run(
        ("catenary kinetic simulate --tokens 24 --start clusters --time 10 --out out/particles",),
        {"particles/figures/simulate.svg": "kinetic-simulate.svg"},
    ),
    "kinetic correlate": Run(
        ("catenary kinetic correlate --tokens 32 --samples 200 --out out/correlate",),
        {"correlate/figures/correlate.svg": "kinetic-correlate.svg"},
    ),
    "kinetic bridge": Run(
        ("catenary kinetic bridge --lam 2 --length 256 --layers 6 --layers 24 --layers 96 --out out/bridge",),
        {"bridge/figures/bridge.svg": "kinetic-bridge.svg", "bridge/figures/bridge-order.svg": "kinetic-order.svg"},
    ),
}  # fmt: skip
"""By name. Run in a folder that holds ``tokenizer`` and, with ``--demo``, ``smollm2-135m``."""

DRAWN = theory_pictures.PICTURES
"""Pictures that a function draws, by file name."""


def pictures() -> dict[str, str]:
    """Every picture in docs/img/gallery, and the name of what draws it."""
    made = {picture: name for name, run in RUNS.items() for picture in run.pictures.values()}
    return made | {picture: picture.removesuffix(".svg") for picture in DRAWN}


def run(name: str, folder: Path) -> None:
    """Run the commands of one entry in ``folder`` and take their figures over."""
    one = RUNS[name]
    for command in one.commands:
        words = shlex.split(command)
        quiet = ["--quiet"] if words[1] not in ("order", "boundaries") else []
        done = subprocess.run(
            [sys.executable, "-m", *words, *quiet], cwd=folder, capture_output=True, text=True, env=_environment()
        )
        if done.returncode:
            sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    if name == "atlas":
        (folder / "out" / "atlas" / "sparklines.svg").write_text(_sparklines(folder / "out" / "atlas"), "utf-8")
    for figure, picture in one.pictures.items():
        save((folder / "out" / figure).read_text("utf-8"), picture)


def save(svg: str, picture: str) -> None:
    """Write one picture; a picture that would make the page heavy is refused."""
    if len(svg.encode()) > LARGEST:
        sys.exit(f"{picture} must stay below {LARGEST} bytes, got {len(svg.encode())}; draw fewer points")
    (GALLERY / picture).write_text(svg, encoding="utf-8")


def _environment() -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1", "NO_COLOR": "1", **os.environ}


def _sparklines(folder: Path) -> str:
    """The pictures of the atlas's table, two in a row, each under its model's name and verdict."""
    with (folder / "atlas.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = re.findall(r"<svg class=\"spark\".*?</svg>", (folder / "atlas.html").read_text("utf-8"), re.S)
    width, height = 340, 120
    cells = []
    for n, (row, spark) in enumerate(zip(rows, found, strict=True)):
        x, y = 10 + width * (n % 2), 10 + height * (n // 2)
        size = f'x="{x}" y="{y + 30}" width="{width - 20}" height="84"'
        placed = re.sub(r'width="\d+" height="\d+"', size, spark, count=1)
        cells.append(
            f'<text x="{x + 4}" y="{y + 14}" font-weight="600">{row["model"]}</text>'
            f'<text x="{x + 4}" y="{y + 28}" fill="#59636e">{row["verdict"]}</text>{placed}'
        )
    tall = 20 + height * ((len(rows) + 1) // 2)
    style = ".spark path{fill:none;stroke:#2a72b5;stroke-width:1.6}.spark circle{fill:#2a72b5}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width + 20}" height="{tall}" font-size="12" '
        f'font-family="system-ui, sans-serif" fill="#1d242c"><style>{style}</style>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(cells)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="draw this one; may be given again")
    parser.add_argument("--demo", type=Path, metavar="FOLDER", help="folder that holds smollm2-135m")
    parser.add_argument("--list", action="store_true", help="names and commands; draw nothing")
    asked = parser.parse_args()
    names = {name: name for name in RUNS} | {picture.removesuffix(".svg"): picture for picture in DRAWN}
    if asked.list:
        for name in names:
            print(name, *(RUNS[name].commands if name in RUNS else ["drawn by a function"]), sep="\n    ")
        return
    for name in asked.only or ():
        if name not in names:
            parser.error(f"--only must be one of {', '.join(names)}, got {name!r}")
    if asked.demo and not (asked.demo / "smollm2-135m").is_dir():
        parser.error(f"--demo must hold the folder smollm2-135m, got {asked.demo}; scripts/fetch_demo.py makes it")
    GALLERY.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tokenizer(folder / "tokenizer")
        if asked.demo:
            (folder / "smollm2-135m").symlink_to((asked.demo / "smollm2-135m").resolve())
        for name in asked.only or names:
            if name not in RUNS:
                save(DRAWN[names[name]](), names[name])
            elif RUNS[name].demo and not asked.demo:
                print(f"{name}: left as it is, needs --demo")
                continue
            else:
                run(name, folder)
            print(f"{name}: drawn", flush=True)
            shutil.rmtree(folder / "out", ignore_errors=True)


if __name__ == "__main__":
    main()
