"""`catenary kinetic`: the interacting particle theory of causal attention. Needs no model, no weights and no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import finding_folder, show_finding
from catenary.cli.terminal import bar, observing

if TYPE_CHECKING:
    from catenary.kinetic.correlations.estimators import EstimatorName
    from catenary.kinetic.depth.birth import BirthKinetics
    from catenary.kinetic.depth.stacks import Stack
    from catenary.page.exhibit import Exhibit
    from catenary.page.kinetic_simulate import Start

kinetic = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kinetic theory of causal attention (arXiv 2605.09213): profiles, regimes, particles, depth.",
)
app.add_typer(kinetic, name="kinetic")

LAM = Annotated[float, typer.Option("--lam", help="Decay lambda >= 0 of attention over the prompt; 0: none.")]
BETA = Annotated[float, typer.Option("--beta", help="Concentration of attention, in (0, 700].")]
TIME = Annotated[float, typer.Option("--time", "-t", help="Time, which stands for depth.")]
ANGLES = Annotated[float, typer.Option("--vocabulary", "-M", help="Number of token angles; the read-out is pi/M wide.")]
TOKENS = Annotated[int, typer.Option("--tokens", "-N", help="Number of tokens.")]

DEPTHS = (6, 12, 24, 48, 96, 192, 384)
"""Depths that the bridge shows unless told otherwise."""


@kinetic.command(
    epilog="""Examples:

- `catenary kinetic profile --lam 1 --beta 1 --time 1` finds a U with its minimum at 26 % of the prompt
- `catenary kinetic profile --lam 5 --time 1 --time 3 --time 5 --out out/profile` compares times on one page
- `catenary kinetic profile --head 1,15,0.5 --head 0.001,15,3` adds two heads: a W
- `catenary kinetic profile --json`
"""
)
def profile(
    lam: LAM = 1.0,
    beta: BETA = 1.0,
    time: Annotated[list[float] | None, typer.Option("--time", "-t", help="Time > 0; up to six. Default 1.")] = None,
    vocabulary: ANGLES = 8.0,
    head: Annotated[
        list[str] | None, typer.Option("--head", help="WEIGHT,LAMBDA,BETA instead of --lam and --beta; several add up.")
    ] = None,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Retrieval by position of the source: shape, interior minimum, and the times that bound the regimes."""
    from catenary.page.kinetic_profile import profile_exhibit

    heads = [_head(text) for text in head] if head else [(1.0, lam, beta)]
    _show(profile_exhibit(heads=heads, times=time or [1.0], M=vocabulary), out, overwrite, json)


@kinetic.command(
    epilog="""Examples:

- `catenary kinetic phase --beta 1`
- `catenary kinetic phase --beta 3 --lam-max 20 --out out/phase` draws the diagram
"""
)
def phase(
    beta: BETA = 1.0,
    vocabulary: ANGLES = 8.0,
    lam_max: Annotated[float, typer.Option("--lam-max", help="Largest decay.")] = 6.0,
    t_max: Annotated[
        float | None, typer.Option("--t-max", help="Longest time. Default: just past the last bound.")
    ] = None,
    cells: Annotated[int, typer.Option("--cells", help="Cells of the grid each way.")] = 48,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Regimes over decay and time: U, hump, pure primacy."""
    from catenary.page.kinetic_phase import phase_exhibit

    found = phase_exhibit(beta=beta, M=vocabulary, largest_decay=lam_max, longest=t_max, cells=cells)
    _show(found, out, overwrite, json)


@kinetic.command(
    epilog="""Examples:

- `catenary kinetic simulate --tokens 64 --time 10`
- `catenary kinetic simulate -N 64 --start clusters --clusters 4 --out out/particles` draws the paths
"""
)
def simulate(
    tokens: TOKENS = 64,
    lam: LAM = 1.0,
    beta: BETA = 1.0,
    time: TIME = 5.0,
    start: Annotated[str, typer.Option("--start", help="uniform or clusters.")] = "uniform",
    clusters: Annotated[int, typer.Option("--clusters", min=1, help="Clusters of that start.")] = 4,
    frames: Annotated[int, typer.Option("--frames", help="Times kept.")] = 101,
    seed: options.SEED = 0,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Run interacting tokens on the circle and follow their angles."""
    from catenary.page.kinetic_simulate import simulate_exhibit

    with observing(quiet) as observer:
        found = simulate_exhibit(
            tokens=tokens, lam=lam, beta=beta, t=time, frames=frames, start=cast("Start", start), clusters=clusters,
            seed=seed, progress=bar(observer, "frames"),
        )  # fmt: skip
    _show(found, out, overwrite, json)


@kinetic.command(
    epilog="""Examples:

- `catenary kinetic correlate --tokens 256 --samples 1000`
- `catenary kinetic correlate --estimator naive --tokens 32 --samples 20000` shows why the others exist
- `catenary kinetic correlate --out out/correlate` draws estimates with bars over the closed form
"""
)
def correlate(
    tokens: TOKENS = 256,
    lam: LAM = 1.0,
    beta: BETA = 1.0,
    time: TIME = 1.0,
    vocabulary: ANGLES = 8.0,
    samples: Annotated[int, typer.Option("--samples", min=2, help="Independent prompts.")] = 1000,
    estimator: Annotated[
        str, typer.Option("--estimator", help="naive, pair, conditional, adjoint or adjoint-control.")
    ] = "adjoint-control",
    bins: Annotated[int, typer.Option("--bins", min=1, help="Points over the prompt.")] = 16,
    seed: options.SEED = 0,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Estimate N times the correlations from particles and hold them against the closed form."""
    from catenary.page.kinetic_correlate import correlate_exhibit

    with observing(quiet) as observer:
        found = correlate_exhibit(
            tokens=tokens, lam=lam, beta=beta, t=time, M=vocabulary, samples=samples, bins=bins, seed=seed,
            estimator=cast("EstimatorName", estimator), progress=bar(observer, "batches"), say=observer.say,
        )  # fmt: skip
    _show(found, out, overwrite, json)


@kinetic.command(
    epilog="""Examples:

- `catenary kinetic bridge --c 1.7 --lam 2`
- `catenary kinetic bridge --stack convex --c 2 --lam 0 --layers 6 --layers 24 --layers 96`
- `catenary kinetic bridge gpt2 --length 1024 --out out/bridge` takes c and lambda from a config at birth
"""
)
def bridge(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="A config whose c and lambda to take.")] = None,
    c: Annotated[
        float | None, typer.Option("--c", help="Total mixing over all layers. Default 1.7, or the model's.")
    ] = None,
    lam: Annotated[float | None, typer.Option("--lam", help="Decay lambda >= 0. Default 0, or the model's.")] = None,
    stack: Annotated[
        str | None, typer.Option("--stack", help="additive or convex. Default additive, for a model convex.")
    ] = None,
    layers: Annotated[
        list[int] | None, typer.Option("--layers", help="Depths, rising. Default 6 to 384 and the model's.")
    ] = None,
    length: options.LENGTH = 2048,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Let the depth of a residual stack grow and watch it become the kinetic closed form."""
    from catenary.page.kinetic_bridge import bridge_exhibit

    birth, depths = None, set(DEPTHS)
    if model is not None:
        from catenary.configs.read import read_config
        from catenary.kinetic.depth.birth import birth_kinetics

        birth = birth_kinetics(read_config(model), length)
        depths.add(birth.gains.size)
        c = birth.c if c is None else c
        lam = _decay(birth) if lam is None else lam
    mixing, decay = 1.7 if c is None else c, 0.0 if lam is None else lam
    chosen = cast("Stack", stack or ("additive" if birth is None else "convex"))
    shown = layers or _depths(depths, mixing, chosen)
    _show(bridge_exhibit(c=mixing, lam=decay, stack=chosen, layers=shown, birth=birth), out, overwrite, json)


def _decay(birth: BirthKinetics) -> float:
    """The decay that all heads have."""
    from catenary.errors import NotApplicable

    low, high = birth.heads[0].lam, birth.heads[-1].lam
    if low != high:
        raise NotApplicable(
            f"{birth.name} has {len(birth.heads)} decays from {low:.4g} to {high:.4g}: choose one with --lam"
        )
    return low


def _depths(depths: set[int], c: float, stack: Stack) -> list[int]:
    """The depths shown unless told otherwise; a convex stack must have more layers than mixing."""
    from catenary.errors import invalid

    shown = sorted(depth for depth in depths if stack == "additive" or depth > c)
    if len(shown) < 2:
        rule = f"must be below {sorted(depths)[-2]} for a convex stack of default depth"
        raise invalid("c", rule, c, "give --layers")
    return shown


def _head(text: str) -> tuple[float, float, float]:
    """WEIGHT,LAMBDA,BETA."""
    from catenary.errors import invalid

    parts = text.split(",")
    try:
        weight, lam, beta = map(float, parts)
    except ValueError:
        raise invalid("head", "must be WEIGHT,LAMBDA,BETA, three numbers", text) from None
    return weight, lam, beta


def _show(found: Exhibit, out: Path | None, overwrite: bool, json: bool) -> None:
    """Write where ``out`` says, unless another result is there, and print."""
    if out is not None:
        finding_folder(out, found.name, found.parameters, overwrite=overwrite)
    show_finding(found, out, json=json)
