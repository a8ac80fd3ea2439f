"""`catenary predict`: the profile a config is born with. Needs no weights and no torch."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.numbers import read_numbers
from catenary.cli.spread import check_drawn, draw_networks
from catenary.cli.terminal import print_json
from catenary.cli.what_if import refuse_with_what_if, what_if

if TYPE_CHECKING:
    from catenary.profile import Profile
    from catenary.store import Run


@app.command(
    epilog="""Examples:

- `catenary predict qwen2-0.5b --length 2048`
- `catenary predict ./config.json --repeat-probability 0.01`
- `catenary predict gpt2 --coupling first-order --json`
- `catenary predict llama-3-8b --out out/llama` writes data and a page
- `catenary predict mpt-7b --theory rollout --schedule power:0.5:1 --content 2.5`
- `catenary predict qwen2-0.5b --length 256 --quantiles` draws networks for the spread of a single one
- `catenary predict gpt2 --vary num_hidden_layers=12:48:12` tries other depths
- `catenary predict qwen3-8b --sensitivities` says which field moves the shape most
"""
)
def predict(
    model: options.MODEL,
    length: options.LENGTH = 512,
    theory: Annotated[str, typer.Option("--theory", help="birth, rollout, cesaro, cesaro-density or null.")] = "birth",
    coupling: Annotated[
        str | None, typer.Option("--coupling", help="birth: strong (default), first-order or uniform.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="birth: auto (default), exact or coarse.")] = None,
    mixing: Annotated[
        float | None, typer.Option("--mixing", help="cesaro: attention's share alpha of each layer, in (0, 1].")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            help="rollout: birth (default), energy, 0.2, power:FIRST:EXPONENT, a,b,c or a .json.",
        ),
    ] = None,
    content: Annotated[
        str | None,
        typer.Option("--content", help="rollout: added to the own key's score; a number, a list or a .json."),
    ] = None,
    content_unit: Annotated[
        str | None, typer.Option("--content-unit", help="rollout: logit (default), or product for unscaled q.k.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="rollout: what scores are divided by (default 1).")
    ] = None,
    compat: Annotated[
        str | None, typer.Option("--compat", help="rollout: ml-uhh-a514e09, or single departures of that code.")
    ] = None,
    repeat_probability: Annotated[
        float, typer.Option("--repeat-probability", help="Chance p2 that two tokens are equal; text is near 0.01.")
    ] = 0.0,
    ids: Annotated[
        Path | None, typer.Option("--ids", help="Token ids, .npy or a JSON list: one window or several, L each.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="FIELD=VALUE,VALUE or FIELD=FIRST:LAST:STEP; several give every combination."),
    ] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivities", help="d ln(index) / d ln(field) for every number in the config.")
    ] = False,
    quantiles: Annotated[
        bool, typer.Option("--quantiles", help="birth: the spread of single networks, by drawing their heads.")
    ] = False,
    networks: Annotated[int, typer.Option("--networks", min=2, help="How many networks --quantiles draws.")] = 24,
    init_std: options.INIT_STD = None,
    revision: options.REVISION = None,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Predict the position profile at birth from the config alone."""
    import catenary
    from catenary.configs.locate import locate_config
    from catenary.provenance import canonical_json
    from catenary.study.existing import existing_run

    located = locate_config(model, revision=revision)
    architecture = catenary.read_config(model, init_std=init_std, revision=revision)
    if not quiet:
        typer.echo(f"{located.source}\n{architecture.describe()}", err=True)
    given = {
        "coupling": coupling, "method": method, "mixing": mixing,
        "schedule": read_numbers("schedule", schedule), "content": read_numbers("content", content),
        "content_unit": content_unit, "temperature": temperature, "compat": compat,
    }  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    if vary or sensitivity:
        laws = {"theory": theory, "repeat_probability": repeat_probability, **chosen}
        refuse_with_what_if(ids=ids, init_std=init_std, quantiles=quantiles or None)
        asked = {"model": model, "model_sha256": _digest(canonical_json(located.config)), "revision": revision}
        what_if(asked, vary or [], sensitivity, length, laws, out, overwrite, json, quiet)
        return
    tokens = None if ids is None else _read_ids(ids)
    config = {
        "model": model,
        "model_sha256": _digest(canonical_json(located.config)),
        "length": length,
        "theory": theory,
        "repeat_probability": repeat_probability,
        "ids": None if ids is None else str(ids),
        "ids_sha256": None if ids is None else _digest(ids.read_bytes()),
        "init_std": init_std,
        "revision": revision,
        "networks": networks if quantiles else None,
        **given,
    }
    finished = None if out is None else existing_run(out, config, overwrite=overwrite)
    if quantiles:
        check_drawn(architecture, length, theory, tokens, repeat_probability)
    profile = catenary.predict(
        architecture, length=length, theory=theory, ids=tokens, repeat_probability=repeat_probability, **chosen
    )
    shape = catenary.describe(profile)
    curves, spread = {"predicted": profile}, None
    if quantiles:
        spread = draw_networks(architecture, length, tokens, networks, quiet)
        curves["drawn"] = spread.profile()
    page = None
    if out is not None:
        page = _write(curves, out, located.source, config, finished)
    if json:
        card = profile.card.to_dict() if profile.card else None
        print_json(
            {
                "label": profile.label,
                "quantity": profile.quantity.name,
                "values": profile.values.tolist(),
                "shape": shape.to_dict(),
                "card": card,
                "provenance": dict(profile.provenance),
                "quantiles": spread.to_dict() if spread else None,
                "report": str(page) if page else None,
            }
        )
        return
    typer.echo(shape.table())
    if spread is not None:
        typer.echo(f"\n  single networks ({networks} drawn)\n{indent(spread.table(), '  ')}\n")
        if any(layer.recurrences for layer in architecture.layers):
            typer.echo("  note: Heads of attention alone are drawn; layers without any do not vary between networks.")
    if profile.card is not None and profile.card.sentence:
        typer.echo(f"  trust: {profile.card.light}. {profile.card.sentence}")
    if profile.card is not None:
        for line in (*profile.card.statements, *profile.card.not_expressed):
            typer.echo(f"  note: {line}")
        for line in profile.card.assumed:
            typer.echo(f"  assumed: {line}")
    if page is not None:
        typer.echo(f"report: {page}")


def _digest(content: str | bytes) -> str:
    """What tells a changed config or file of ids from the one that a folder was written for."""
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _read_ids(path: Path) -> Any:
    """Token ids from ``.npy`` or JSON; their shape is checked by ``predict``."""
    import json

    import numpy

    from catenary.errors import invalid

    try:
        if path.suffix == ".npy":
            return numpy.load(path, allow_pickle=False)
        return numpy.array(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        rule = "must be a .npy file or a JSON list of whole numbers"
        raise invalid("ids", rule, str(path), " ".join(str(error).split())[:160]) from error


def _write(curves: dict[str, Profile], out: Path, source: str, config: dict[str, Any], finished: Run | None) -> Path:
    from catenary.provenance import versions
    from catenary.store import read_run, write_run
    from catenary.study.report import report_run

    if finished is None:
        write_run(out, curves, {"config": config, "model": {"source": source}, "versions": versions()})
    return report_run(read_run(out))
