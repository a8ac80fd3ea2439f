"""The kinetic verbs: verdicts in words, data that agree with the theory, files, and one clean line per error."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from builders import qwen2_like
from catenary.cli.main import app
from catenary.configs.read import read_config
from catenary.errors import InvalidInput
from catenary.kinetic import birth_kinetics, interior_minimum, retrieval_profile, stack_response, t_crit
from catenary.kinetic.closed_form.phase import phase_diagram
from catenary.kinetic.closed_form.retrieval import log_retrieval_profile
from catenary.page.exhibit import Exhibit, write_exhibit
from catenary.page.kinetic_bridge import bridge_exhibit
from catenary.page.kinetic_correlate import correlate_exhibit
from catenary.page.kinetic_phase import phase_exhibit
from catenary.page.kinetic_profile import profile_exhibit
from catenary.page.kinetic_simulate import simulate_exhibit


def quiet(done: int, total: int) -> None:
    assert 1 <= done <= total


def columns(exhibit: Exhibit) -> dict[str, list[str]]:
    rows = list(csv.DictReader(io.StringIO(exhibit.to_csv())))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_profile_marks_the_minimum_and_names_the_regime() -> None:
    seen = profile_exhibit(heads=[(1.0, 1.0, 1.0)], times=[1.0, 2.6], M=8)
    assert seen.verdict == "U at t = 1, primacy at t = 2.6"
    assert seen.notes[:2] == (
        "t = 1: U shape: primacy, recency, and worst at 26 % of the prompt, 27 % below the last position",
        "t = 2.6: Primacy: retrieval falls from the first token to the last, no interior minimum",
    )
    found = interior_minimum(lam=1.0, beta=1.0, t=1.0, M=8)
    marks = [row for row in seen.plates[0].chart["datasets"]["drawn"] if "mark" in row]
    assert [row["x"] for row in marks] == [pytest.approx(float(found.sigma), rel=1e-4)]
    assert marks[0]["mark"] == "minimum at 0.259"
    assert [row[1] for row in seen.rows] == ["U", "primacy"]
    assert seen.results["bounds"]["recency ends at t"] == pytest.approx(float(t_crit(1.0, 1.0, 8)))
    data = columns(seen)
    late = np.array(data["t"], dtype=float) == 2.6
    values = np.array(data["S"], dtype=float)[late]
    at = np.array(data["sigma0"], dtype=float)[late]
    assert values == pytest.approx(retrieval_profile(at, lam=1.0, beta=1.0, t=2.6, M=8), rel=1e-12)
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize(
    ("heads", "t", "words"),
    [
        ([(1.0, 5.0, 1.0)], 5.0, "Hump: worst at 19 %, best of the rest at 81 %"),
        ([(1.0, 15.0, 0.5), (1e-3, 15.0, 3.0)], 1.0, "W shape: two wells, at 9 % and 92 % of the prompt"),
        ([(1.0, 0.0, 1.0)], 1.0, "Primacy: retrieval falls from the first token to the last"),
        ([(-1.0, 0.0, 1.0)], 1.0, "Recency: retrieval rises from the first token to the last"),
        ([(1.0, 2.0, 1.0), (-1.0, 2.0, 1.0)], 1.0, "Flat: retrieval is the same at every position"),
        ([(0.1, 2.0, 1.0), (0.2, 2.0, 1.0), (-0.3, 2.0, 1.0)], 1.0, "Flat"),
        ([(1.0, 1e5, 1.0)], 1.0, "U shape: primacy, recency, and worst at 2.4e-06 % of the prompt"),
        ([(-1.0, 1.0, 1.0)], 1.0, "Inverted U between the first and the last position"),
    ],
)
def test_shapes_in_words(heads: list[tuple[float, float, float]], t: float, words: str) -> None:
    assert profile_exhibit(heads=heads, times=[t], M=8).verdict.startswith(words)


def test_labels_of_minima_stand_below_and_log_axes_say_so() -> None:
    chart = profile_exhibit(heads=[(1.0, 5.0, 1.0)], times=[5.0], M=8).plates[0].chart
    layers = {layer["name"]: layer for layer in chart["layer"]}
    assert layers["labels"]["mark"]["dy"]["expr"] == "indexof(datum.mark, 'minimum') == 0 ? 16 : -14"
    assert layers["line"]["encoding"]["y"]["title"] == "retrieval profile S (log)"
    stack = bridge_exhibit(c=1.7, lam=2.0, stack="additive", layers=[20, 40]).plates[1].chart["layer"][0]["encoding"]
    assert stack["x"]["title"] == "layers H (log)"


def test_every_time_is_in_the_verdict() -> None:
    seen = profile_exhibit(heads=[(1.0, 5.0, 1.0)], times=[1.0, 3.0, 5.0], M=8)
    assert seen.verdict == "U at t = 1 and 3, hump at t = 5"


def test_a_value_below_float64_is_shown_as_a_power_of_ten() -> None:
    seen = profile_exhibit(heads=[(1.0, 1e5, 1.0)], times=[1.0], M=8)
    bend = seen.results["profiles"][0]["extrema"][0]
    assert bend["value"] == 0
    assert seen.rows[0][4] == f"10^{bend['log_value'] / np.log(10):.1f}"
    mild = profile_exhibit(heads=[(2.0, 1.0, 1.0)], times=[1.0], M=8).results["profiles"][0]["extrema"][0]
    assert mild["log_value"] == pytest.approx(np.log(mild["value"]), rel=1e-12)


def test_phase_has_three_regimes_where_the_theory_has() -> None:
    seen = phase_exhibit(beta=1.0, M=8, largest_decay=6.0, longest=None, cells=12)
    assert set(seen.results["shares"]) == {"U", "hump", "primacy"}
    assert sum(seen.results["shares"].values()) == pytest.approx(1.0)
    data = columns(seen)
    recent = np.array(data["t"], dtype=float) < t_crit(np.array(data["lam"], dtype=float), 1.0, 8)
    assert (np.array(data["regime"]) == "U").tolist() == recent.tolist()
    assert all((sigma == "") == (word == "primacy") for sigma, word in zip(data["sigma"], data["regime"], strict=True))
    assert seen.verdict.endswith("; then a hump where lambda is 1.5 or more; at last primacy")
    mild = phase_exhibit(beta=1.0, M=8, largest_decay=1.0, longest=4.0, cells=6)
    assert "hump" not in mild.verdict
    assert mild.verdict.endswith("at lambda = 1; then primacy")


def test_phase_speaks_of_no_time_beyond_the_diagram_and_of_humps_between_its_cells() -> None:
    short = phase_exhibit(beta=1.0, M=8, largest_decay=6.0, longest=0.1, cells=6)
    assert short.verdict == (
        "Recency lasts throughout, to t = 0.1, at lambda = 1 and throughout, to t = 0.1, at lambda = 6"
    )
    long = phase_exhibit(beta=1.0, M=8, largest_decay=6.0, longest=1e6, cells=6)
    assert set(long.results["shares"]) == {"primacy"}
    assert long.verdict.endswith("; then a hump where lambda is 2 or more; at last primacy")


def test_phase_goes_on_where_values_leave_float64() -> None:
    seen = phase_diagram(lam=[1.0, 1000.0], t=[2.0, 1700.0], beta=1.0, M=8)
    assert seen.regime.tolist() == [["U", "primacy"], ["U", "hump"]]
    assert np.isfinite(seen.depth).tolist() == [[True, False], [True, False]]
    assert np.isfinite(seen.sigma).tolist() == [[True, False], [True, True]]
    around = seen.sigma[1, 1] * np.array([0.99, 1.0, 1.01])
    assert np.argmin(log_retrieval_profile(around, lam=1000.0, beta=1.0, t=1700.0, M=8)) == 1
    single = interior_minimum(lam=[1.0, 1000.0], beta=1.0, t=2.0, M=8)
    assert seen.sigma[:, 0] == pytest.approx(single.sigma, rel=1e-12)
    assert seen.depth[:, 0] == pytest.approx(single.depth, rel=1e-11)
    page = phase_exhibit(beta=1.0, M=8, largest_decay=1000.0, longest=None, cells=8)
    assert set(page.results["shares"]) == {"hump", "primacy"}


def test_simulate_clusters_and_repeats_itself() -> None:
    seen, again = (
        simulate_exhibit(
            tokens=24, lam=1.0, beta=1.0, t=12.0, frames=13, start="uniform", clusters=4, seed=3, progress=quiet
        )
        for _ in range(2)
    )
    assert seen.results["order"][0] < 0.4
    assert seen.results["order"][-1] > 0.9
    assert seen.to_csv() == again.to_csv()
    angles = np.array(columns(seen)["angle"], dtype=float).reshape(13, 24)
    assert (angles[:, 0] == angles[0, 0]).all()
    drawn = seen.plates[0].chart["datasets"]["drawn"]
    assert max(abs(row["value"]) for row in drawn) <= 3.1416
    packs = simulate_exhibit(
        tokens=24, lam=1.0, beta=1.0, t=1.0, frames=2, start="clusters", clusters=2, seed=3, progress=quiet
    )
    first = np.array(columns(packs)["angle"], dtype=float)[:24]
    assert np.abs(np.sin(first)).max() < 5 * 0.075


def unsaid(text: str) -> None:
    raise AssertionError(text)


@pytest.mark.parametrize("estimator", ["adjoint-control", "pair"])
def test_correlate_meets_the_closed_form(estimator: str) -> None:
    seen = correlate_exhibit(
        tokens=48, lam=1.0, beta=0.5, t=1.0, M=8, samples=600, estimator=estimator, bins=4, seed=1, progress=quiet,  # type: ignore[arg-type]
        say=unsaid,
    )
    data = {name: np.array(values, dtype=float) for name, values in columns(seen).items()}
    assert len(data["estimate"]) == 4
    gap = np.abs(data["estimate"] - data["closed_form"])
    assert (gap < 5 * data["stderr"] + 3 / 48 * data["closed_form"]).all()
    bars = [row for row in seen.plates[0].chart["datasets"]["drawn"] if "low" in row]
    assert len(bars) == 4
    assert all(row["low"] < row["value"] < row["high"] for row in bars)
    rings = [row["value"] for row in seen.plates[0].chart["datasets"]["drawn"] if "ring" in row]
    assert rings == pytest.approx(data["closed_form"], rel=1e-3)
    assert seen.results["median_relative_stderr"] == pytest.approx(
        np.median(data["stderr"] / np.abs(data["estimate"])), rel=1e-12
    )
    assert "too few" not in seen.verdict
    assert "order 1/N" in seen.notes[0]


@pytest.mark.parametrize(("bins", "points"), [(10, 10), (7, 7), (100, 47)])
def test_correlate_keeps_the_bins_and_every_source(bins: int, points: int) -> None:
    seen = correlate_exhibit(
        tokens=48, lam=1.0, beta=0.5, t=1.0, M=8, samples=20, estimator="adjoint", bins=bins, seed=1, progress=quiet,
        say=unsaid,
    )
    data = {name: np.array(values, dtype=float) for name, values in columns(seen).items()}
    assert len(data["estimate"]) == points
    sizes = np.array([len(group) for group in np.array_split(np.arange(47), points)])
    assert sizes @ data["sigma0"] == pytest.approx(np.arange(1, 48).sum() / 48)
    whole = retrieval_profile(np.arange(1, 48) / 48, lam=1.0, beta=0.5, t=1.0, M=8)
    assert sizes @ data["closed_form"] == pytest.approx(np.sum(whole), rel=1e-12)
    assert ("averaged over" in seen.plates[0].caption) == (points < 47)


def test_correlate_says_where_the_tokens_are_too_few() -> None:
    order: list[str] = []
    seen = correlate_exhibit(
        tokens=16, lam=1.0, beta=4.0, t=1.0, M=8, samples=10, estimator="adjoint-control", bins=4, seed=0,
        progress=lambda *_: order.append("sampled"), say=order.append,
    )  # fmt: skip
    assert [order[0].split(" at ")[0], *order[1:]] == ["16 tokens are too few for the closed form", "sampled"]
    assert seen.results["median_relative_stderr"] > 0.01
    assert "16 tokens are too few for the closed form at this time" in seen.verdict


def test_correlate_at_a_decay_that_leaves_nothing_says_so_or_gives_numbers() -> None:
    made = CliRunner().invoke(app, ["kinetic", "correlate", "-N", "16", "--samples", "20", "--lam", "1e6", "--quiet"])
    assert made.exit_code == 0 or isinstance(made.exception, InvalidInput)
    assert "nan" not in made.output


def test_simulate_keeps_the_tokens_drawn_alone() -> None:
    seen = simulate_exhibit(
        tokens=500, lam=1.0, beta=1.0, t=0.2, frames=3, start="uniform", clusters=4, seed=3, progress=quiet
    )
    data = columns(seen)
    assert len(seen.data) == 3 * 64
    assert [data["token"][0], data["token"][63]] == ["1", "500"]
    drawn = {row["sigma"] for row in seen.plates[0].chart["datasets"]["drawn"]}
    assert len(drawn) == 64
    start = np.random.default_rng(3).uniform(0, 2 * np.pi, 500)
    assert seen.results["order"][0] == pytest.approx(np.abs(np.exp(1j * start).mean()), rel=1e-12)
    assert "about 1/sqrt(N)" in seen.notes[0]


def test_bridge_shows_stacks_and_their_order_and_takes_a_model() -> None:
    birth = birth_kinetics(qwen2_like(width=64, depth=4, heads=4, kv_heads=4, head_dim=16, ffn=128), 512)
    seen = bridge_exhibit(c=birth.c, lam=birth.lam, stack="convex", layers=[8, 64, 512], birth=birth)
    assert seen.results["order"] == pytest.approx(1.0, abs=0.1)
    assert "at birth, 512 tokens: lambda = 0" in seen.notes[0]
    data = columns(seen)
    at = np.array(data["sigma0"][:4], dtype=float)
    expected = stack_response(at, c=birth.c, lam=0.0, layers=8, stack="convex")
    assert np.array(data["response"][:4], dtype=float) == pytest.approx(expected, rel=1e-14)
    assert {row["curve"] for row in seen.plates[0].chart["datasets"]["drawn"]} == {
        "8 layers", "64 layers", "512 layers", "kinetic closed form"
    }


def test_bridge_of_a_model_is_the_convex_stack_with_the_models_depth_marked() -> None:
    made = CliRunner().invoke(app, ["kinetic", "bridge", "gpt2", "--json"])
    record = json.loads(made.stdout)
    birth = birth_kinetics(read_config("gpt2"), 2048)
    assert record["parameters"] == {
        "c": birth.c, "lam": 0.0, "stack": "convex", "layers": [6, 12, 24, 48, 96, 192, 384]
    }
    seen = bridge_exhibit(c=birth.c, lam=0.0, stack="convex", layers=[6, 12, 24, 48, 96], birth=birth)
    curves = {row["curve"] for row in seen.plates[0].chart["datasets"]["drawn"]}
    assert "12 layers, as gpt2" in curves
    assert "largest difference at the model's 12 branches" in dict(seen.numbers)
    other = CliRunner().invoke(app, ["kinetic", "bridge", "gpt2", "--c", "2"])
    assert "Shown here: c = 2, as given, not the model's." in other.output
    additive = CliRunner().invoke(app, ["kinetic", "bridge", "gpt2", "--stack", "additive"])
    assert "The model's c is the total mixing of the convex stack" in additive.output


def test_bridge_words_compare_coefficients() -> None:
    seen = bridge_exhibit(c=1.7, lam=2.0, stack="additive", layers=[6, 12, 24, 48, 96, 192, 384])
    assert "falls as 1/H: at position 0.05 the fitted coefficient is -3.491, the exact one -3.491" in seen.verdict
    assert seen.results["order"] == pytest.approx(1.0, abs=0.02)
    steep = bridge_exhibit(c=1.7, lam=700.0, stack="additive", layers=[6, 12, 24])
    assert "does not yet fall as 1/H" in steep.verdict
    huge = CliRunner().invoke(app, ["kinetic", "bridge", "--c", "1e6", "--lam", "2", "--layers", "1", "--layers", "2"])
    assert str(huge.exception) == "the response must stay below 1e308; use a smaller c or later sources"


def test_files_are_complete_and_repeat(tmp_path: Path) -> None:
    seen = profile_exhibit(heads=[(1.0, 1.0, 1.0)], times=[1.0], M=8)
    page = write_exhibit(seen, tmp_path / "a")
    again = write_exhibit(seen, tmp_path / "b")
    assert page.read_bytes() == again.read_bytes()
    names = {str(path.relative_to(tmp_path / "a")) for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert names == {
        "profile.html", "profile.csv", "profile.json",
        "figures/profile.svg", "figures/profile.png", "figures/profile.pdf",
    }
    record = json.loads((tmp_path / "a" / "profile.json").read_text())
    assert record["parameters"] == {"heads": [[1.0, 1.0, 1.0]], "times": [1.0], "M": 8}
    assert len(record["data"]["S"]) == len(seen.data)
    assert "<script" not in page.read_text()


def test_commands_print_write_and_give_json(tmp_path: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["kinetic", "profile", "--head", "1,5,1", "-t", "5", "--out", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("Hump")
    assert f"page: {tmp_path / 'profile.html'}" in shown.output
    commands = (
        ["phase", "--cells", "5"],
        ["simulate", "-N", "8", "--frames", "3", "-t", "1", "--quiet"],
        ["correlate", "-N", "16", "--samples", "20", "--bins", "3", "--quiet"],
        ["bridge", "toy", "--length", "64", "--layers", "20", "--layers", "40"],
    )
    for command in commands:
        made = runner.invoke(app, ["kinetic", *command, "--json"])
        assert made.exit_code == 0, made.output
        record = json.loads(made.stdout)
        assert record["finding"] == command[0]
        assert all(len(values) == len(next(iter(record["data"].values()))) for values in record["data"].values())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["profile", "--lam", "-1"], "lam must be >= 0"),
        (["profile", "--head", "1,2"], "head must be WEIGHT,LAMBDA,BETA"),
        (["profile", *["-t", "1"] * 7], "time must be given 1 to 6 times"),
        (["profile", "--lam", "1000", "-t", "1900"], "the profile leaves float64 at t = 1900: take a smaller --time"),
        (["phase", "--beta", "0"], "beta must be in"),
        (["phase", "--cells", "1"], "cells must be a whole number in 4..200"),
        (["simulate", "-N", "1"], "tokens must be a whole number of at least 2"),
        (["simulate", "--start", "heap"], "start must be one of uniform, clusters"),
        (["simulate", "--clusters", str(10**30)], "clusters must be a whole number in 1..1000"),
        (["correlate", "-t", "2000"], "take fewer or smaller samples, tokens, beta or time"),
        (["simulate", "--frames", "1"], "frames must be a whole number in 2..2000"),
        (["simulate", "--beta", "20", "-t", "1", "-N", "4"], "this needs about 9.7e+09 steps of 4 tokens"),
        (["simulate", "-N", "100000000"], "take fewer or smaller tokens, frames, beta or time"),
        (["correlate", "-N", "100000000"], "take fewer or smaller samples, tokens, beta or time"),
        (["correlate", "--beta", "30"], "steps of 256,000 tokens"),
        (["correlate", "--estimator", "nive"], "Did you mean 'naive'"),
        (["bridge", "--stack", "sum"], "unknown stack 'sum'"),
        (["bridge", "bloom-560m"], "16 decays from 8 to 1448: choose one with --lam"),
        (["bridge", "--stack", "convex", "--c", "1000"], "convex stack of default depth, got 1000.0; give --layers"),
    ],
)
def test_errors_are_ours(command: list[str], words: str) -> None:
    made = CliRunner().invoke(app, ["kinetic", *command])
    assert isinstance(made.exception, InvalidInput)
    assert words in str(made.exception)


def test_help_has_examples() -> None:
    for verb in ("profile", "phase", "simulate", "correlate", "bridge"):
        shown = CliRunner().invoke(app, ["kinetic", verb, "--help"])
        assert shown.exit_code == 0
        assert f"catenary kinetic {verb}" in shown.output
