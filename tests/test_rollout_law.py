"""The rollout as a theory: what it reads from a config, its options, and each departure of the published code."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import catenary as ct
from builders import qwen2_like
from catenary.architecture import Alibi, Architecture, HeadGroup, Layer, Window
from catenary.errors import InvalidInput, NotApplicable
from catenary.quantity import PATH_WEIGHT
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.rollout.attention import Head, head_mean
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import COMMIT, DEPARTURES, departures
from catenary.theory.rollout.schedules import Constant, Given, PowerDecay, read_schedule
from catenary.theory.strengths import predicted_strengths

GOLDEN = json.loads((Path(__file__).parent / "golden" / "rollout.json").read_text())["entries"]
SMALL = qwen2_like(width=64, depth=3, heads=4, kv_heads=2, head_dim=16, ffn=96)
BLOOM: dict[str, Any] = {
    "model_type": "bloom", "hidden_size": 96, "n_head": 6, "n_layer": 2, "vocab_size": 16, "initializer_range": 0.1,
}
FALCON: dict[str, Any] = {
    "model_type": "falcon", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 16,
    "alibi": True, "multi_query": False, "new_decoder_architecture": False, "parallel_attn": False,
}


def slopes(architecture: Architecture) -> list[float]:
    groups = architecture.layers[0].attention.groups
    return [g.kernel.slope for g in groups if isinstance(g.kernel, Alibi)]


def rolled(architecture: Architecture, **options: Any) -> np.ndarray:
    return ct.predict(architecture, length=40, theory="rollout", schedule=0.3, **options).values


def row(architecture: Architecture, heads: list[Head]) -> np.ndarray:
    return rollout_row([head_mean(heads, 40)] * architecture.depth, Constant(0.3).strengths(architecture.depth))


def test_published_model_from_its_config() -> None:
    entry = GOLDEN[2]
    given = {"schedule": entry["lambdas"], "content": entry["content_diagonal"]}
    profile = ct.predict(ct.read_config("mpt-7b"), length=256, theory="rollout", compat=COMMIT, **given)
    for name, place in (("first", 0), ("middle", 128), ("last", 255)):
        assert profile.values[place] == pytest.approx(entry["golden_with_published_bug"][name], rel=1e-9)
    assert profile.provenance["control_quantity"] == pytest.approx(entry["control_with_published_bug"], abs=1e-6)


def test_profile_and_defaults() -> None:
    profile = ct.predict(SMALL, length=100, theory="rollout")
    strengths = predicted_strengths(SMALL, 100).values()
    np.testing.assert_allclose(profile.values, cesaro_row(100, 3, strengths), rtol=1e-12)
    energies = [row.energy for row in predicted_strengths(SMALL, 100).of()]
    shares = ct.predict(SMALL, length=100, theory="rollout", schedule="energy")
    np.testing.assert_allclose(shares.values, cesaro_row(100, 3, energies), rtol=1e-12)
    assert profile.quantity is PATH_WEIGHT
    assert profile.label == f"rollout, birth-law strengths, sum {sum(strengths):.3g}"
    assert profile.card is not None
    assert f"Sum of strengths {sum(strengths):.3g}" in " ".join(profile.card.statements)
    record = json.loads(json.dumps(dict(profile.provenance)))
    options = {name: record[name] for name in ("schedule", "content", "content_unit", "temperature", "compat")}
    again = ct.predict(SMALL, length=100, theory="rollout", **options)
    np.testing.assert_array_equal(again.values, profile.values)
    repeated = ct.predict(SMALL, length=100, theory="rollout", ids=np.arange(100) % 50)
    rate = 100 / (100 * 99)
    np.testing.assert_allclose(
        repeated.values, ct.predict(SMALL, length=100, theory="rollout", repeat_probability=rate).values, rtol=1e-13
    )


def test_masks_slopes_and_heads_of_the_architecture() -> None:
    layer = SMALL.layers[0]
    mixed = replace(layer.attention, groups=(HeadGroup(3, Alibi(0.4)), HeadGroup(1, Window(5))))
    other = replace(SMALL, layers=(layer.with_mixers(attention=mixed),) * 2)
    expected = row(other, [Head(0.4, content=1.5, count=3), Head(mask=Window(5), content=1.5)])
    np.testing.assert_allclose(rolled(other, content=1.5), expected, rtol=1e-13)
    # Heads are counted in the config's order.
    own = [1.0, 0.0, 0.0, 2.0]
    expected = row(other, [Head(0.4, content=1.0), Head(0.4, count=2), Head(mask=Window(5), content=2.0)])
    np.testing.assert_allclose(rolled(other, content=[own]), expected, rtol=1e-13)
    np.testing.assert_allclose(
        rolled(other, content=3.0, temperature=2.0), row(other, [Head(0.2, content=1.5, count=3),
                                                                 Head(mask=Window(5), content=1.5)]), rtol=1e-13
    )  # fmt: skip


def test_each_departure_of_the_published_code() -> None:
    bloom, falcon = ct.read_config(BLOOM), ct.read_config(FALCON)
    assert slopes(bloom) == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]
    one_series = [Head(2 ** (-8 * k / 6)) for k in range(1, 7)]
    np.testing.assert_allclose(rolled(bloom, compat="one-series-slopes"), row(bloom, one_series), rtol=1e-13)
    np.testing.assert_allclose(slopes(falcon), [2.0 ** (-2 * k) / 4 for k in range(1, 5)])
    bare = row(falcon, [Head(4 * slope) for slope in slopes(falcon)])
    np.testing.assert_allclose(rolled(falcon, compat="bare-slope"), bare, rtol=1e-13)
    np.testing.assert_allclose(rolled(falcon, compat="one-series-slopes"), rolled(falcon), rtol=1e-13)
    scaled = row(SMALL, [Head(content=8.0 / 4)])
    np.testing.assert_allclose(rolled(SMALL, content=8.0, content_unit="product"), scaled, rtol=1e-13)
    unscaled = rolled(SMALL, content=8.0, content_unit="product", compat="unscaled-content")
    np.testing.assert_allclose(unscaled, row(SMALL, [Head(content=8.0)]), rtol=1e-13)
    first = rolled(SMALL, content=2.0, compat="content-in-first-heads")
    np.testing.assert_allclose(first, row(SMALL, [Head(content=2.0), Head(count=3)]), rtol=1e-13)
    cut = ct.predict(SMALL, length=40, theory="rollout", schedule=[1.4, 0.2, -0.1], compat="clipped-strengths")
    np.testing.assert_allclose(cut.values, cesaro_row(40, 3, [1.0, 0.2, 0.0]), rtol=1e-12)
    assert departures(COMMIT) == set(DEPARTURES)
    with pytest.raises(InvalidInput, match=r"unknown compat 'bare-slopes'\. Did you mean 'bare-slope'"):
        departures("unscaled-content,bare-slopes")


def test_schedules() -> None:
    assert PowerDecay(0.8, 2.0).strengths(3).tolist() == pytest.approx([0.8, 0.2, 0.8 / 9])
    assert Constant(0.2).strengths(2).tolist() == [0.2, 0.2]
    for text, known in (
        ("0.2", Constant(0.2)), ("constant:0.2", Constant(0.2)), ("power:0.5:1", PowerDecay(0.5, 1.0)),
        ("0.4, 0.2", Given((0.4, 0.2))),
    ):  # fmt: skip
        assert read_schedule(text) == known
    assert read_schedule(1) == Constant(1.0)
    assert read_schedule(np.array([0.1, 0.2])) == Given((0.1, 0.2))
    for bad in ("power:0.5", "linear:1", "constant:a", "", "power:1:2:3"):
        with pytest.raises(InvalidInput, match="schedule"):
            read_schedule(bad)
    with pytest.raises(InvalidInput, match=r"schedule must be in .* \(layer 1, 0-based\), got 1\.5"):
        Given((0.1, 1.5)).strengths(2)
    assert Given((0.1, 1.5)).strengths(2, clip=True).tolist() == [0.1, 1.0]
    with pytest.raises(InvalidInput, match="schedule must have one strength for each of 3 layers, got 2"):
        Given((0.1, 0.2)).strengths(3)
    with pytest.raises(InvalidInput, match="must be > 0 in at least one layer"):
        Constant(0.0).strengths(3)
    with pytest.raises(InvalidInput, match="must be in"):
        Constant(float("nan")).strengths(3)


def test_power_decay_collapses_up_to_exponent_one() -> None:
    """The first token's share at great depth: it tends to 1 for beta <= 1, and stays away from it above."""
    first = {
        (beta, depth): rollout_row([head_mean([Head()], 2)] * depth, PowerDecay(0.9, beta).strengths(depth))[0]
        for beta in (1.0, 2.0)
        for depth in (50, 500)
    }
    # Of two tokens the second keeps the product of 1 - lambda_t/2: depth^-0.45 at beta = 1.
    rate = np.log10((1 - first[1.0, 500]) / (1 - first[1.0, 50]))
    assert rate == pytest.approx(-0.45, abs=0.004)
    assert first[2.0, 500] - first[2.0, 50] == pytest.approx(0, abs=6e-3)
    assert first[2.0, 500] < 1 - np.exp(-0.9 * np.pi**2 / 6)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="unknown option of theory 'rollout': 'mixing'"):
        ct.predict(SMALL, length=40, theory="rollout", mixing=0.1)
    with pytest.raises(InvalidInput, match=r"unknown content_unit 'logits'\. Did you mean 'logit'"):
        rolled(SMALL, content_unit="logits")
    with pytest.raises(InvalidInput, match="temperature must be finite and > 0, got 0"):
        rolled(SMALL, temperature=0)
    bare = replace(SMALL, layers=tuple(Layer(layer.steps[1:]) for layer in SMALL.layers))
    with pytest.raises(NotApplicable, match="has no attention to roll out"):
        rolled(bare)


def test_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "catenary", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    written = run("strengths", "toy", "--nets", "0", "--length", "64", "--out", str(tmp_path), "--quiet")
    assert written.returncode == 0, written.stderr
    assert "\nsum  " in written.stdout
    assert (tmp_path / "strengths.csv").read_text().startswith("model,label,length,layer,branch,strength")
    command = ("predict", "toy", "--theory", "rollout", "--length", "64", "--quiet", "--json")
    shown = json.loads(run(*command, "--schedule", str(tmp_path / "strengths.json"), "--content", "1.5").stdout)
    arch = ct.read_config("toy")
    expected = ct.predict(arch, length=64, theory="rollout", content=1.5).values
    assert shown["values"] == pytest.approx(expected.tolist(), rel=1e-12)
    refused = run(*command, "--schedule", str(tmp_path / "none.json"))
    assert refused.returncode == 2
    assert "schedule must be a JSON file of a list of numbers, or a strengths.json" in refused.stderr
