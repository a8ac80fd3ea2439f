"""The what-if part of `catenary predict`: other values of config fields, and which field moves the shape most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from catenary.cli.terminal import bar, observing, print_json


def refuse_with_what_if(**given: object) -> None:
    """Refuse options that a what-if does not take."""
    from catenary.errors import invalid

    hints = {
        "init_std": "vary initializer_range instead",
        "ids": "use --repeat-probability",
        "quantiles": "ask for them at one config",
    }
    for name, value in given.items():
        if value is not None:
            raise invalid(name, "cannot go with --vary or --sensitivities", str(value), hints[name])


def what_if(
    asked: Mapping[str, Any],
    axes: list[str],
    sensitivity: bool,
    length: int,
    laws: Mapping[str, Any],
    out: Path | None,
    overwrite: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Predict every combination of ``axes``, or the sensitivities, or both; print, and write where ``out`` says.

    ``asked`` says which model: its name, the digest of its config, and its revision.
    """
    from catenary.explore.grid import parse_axis
    from catenary.explore.sensitivity import sensitivities
    from catenary.explore.variation import vary
    from catenary.study.existing import check_folder

    model, parsed = asked["model"], [parse_axis(text) for text in axes]
    config = {**asked, "vary": axes, "sensitivities": sensitivity, "length": length, **laws}
    names = [name for name, wanted in (("variation.json", parsed), ("sensitivities.json", sensitivity)) if wanted]
    if out is not None:
        check_folder(out, names, config, overwrite=overwrite)
    result: dict[str, Any] = {}
    with observing(quiet) as observer:
        options: dict[str, Any] = {"length": length, "revision": asked["revision"], **laws}
        if parsed:
            variation = vary(model, parsed, progress=bar(observer, "variants"), **options)
            result["variation"] = variation.rows()
        if sensitivity:
            knobs = sensitivities(model, progress=bar(observer, "fields"), **options)
            result["sensitivities"] = knobs.to_dict()["knobs"]
    if parsed and out is not None:
        from catenary.page.variation import write_variation

        result["written"] = str(write_variation(variation, out, config=config))
    if sensitivity and out is not None:
        from catenary.provenance import versions
        from catenary.store import write_json

        write_json(out / "sensitivities.json", {**knobs.to_dict(), "config": config, "versions": versions()})
        result.setdefault("written", str(out / "sensitivities.json"))
    if json:
        print_json({"model": model, "length": length, **result})
        return
    if parsed:
        typer.echo(variation.table())
    if sensitivity:
        typer.echo(knobs.table())
    if "written" in result:
        typer.echo(f"written: {result['written']}")
