"""Studies of trained networks, training and the rollout at tiny sizes: their numbers by other routes and by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.boundaries import Layout
from catenary.errors import MissingResource
from catenary.reading import Reading
from catenary.reproduce import valley
from catenary.reproduce.claim import interval_of
from catenary.reproduce.demo import demo_path
from catenary.reproduce.experiment import experiments_folder, read_experiment
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.resampling import drawn_together
from catenary.reproduce.studies import rollout_measured, rollout_published
from catenary.reproduce.written import written_rollout
from catenary.study.observer import Silent
from catenary.text.windows import Windows
from small_tokenizers import word_tokenizer
from tiny_models import TINY, token_windows

WORDS = 120
GOLDEN = json.loads((Path(__file__).parent / "golden" / "rollout.json").read_text())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo folder: a tiny network with weights and a tokenizer of whole words, and 60 documents."""
    folder = tmp_path_factory.mktemp("demo")
    config = {**TINY["llama"], "vocab_size": WORDS + 3, "hidden_size": 32, "num_hidden_layers": 3}
    network = ct.load(config, seed=5)
    network.module.save_pretrained(folder / "tiny")
    word_tokenizer(WORDS).save_pretrained(folder / "tiny")
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, WORDS, 90)) for _ in range(60)]
    (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    return folder


@pytest.fixture
def demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("CATENARY_DEMO", str(home))
    return {"model": "demo/tiny", "documents": "demo/texts.jsonl", "length": 64, "chunk": 16, "block": 8, "windows": 3}


def draws_of(count: int) -> Any:
    """``drawn_together`` with few draws, whatever is asked for."""
    return lambda *given, **options: drawn_together(*given, **{**options, "draws": count})


def run(name: str, paper: str, experiment: str, **changes: Any) -> Finding:
    settings = {**read_experiment(experiments_folder() / paper / f"{experiment}.toml").settings, **changes}
    return STUDIES[name](settings, Silent())


def test_the_demo_folder_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CATENARY_DEMO", str(tmp_path))
    with pytest.raises(MissingResource, match="make fetch"):
        demo_path("demo/documents")
    (tmp_path / "documents").mkdir()
    assert demo_path("demo/documents") == str(tmp_path / "documents")
    assert demo_path("preset:toy") == "preset:toy"


def test_depths_ramp_and_joins_of_planted_curves() -> None:
    length, rng = 512, np.random.default_rng(0)
    scatter = np.exp(0.3 * rng.standard_normal((40, length)))
    x = (np.arange(length) + 0.5) / length
    valley_curve = np.where(x < 0.3, 4.0, np.where(x > 0.88, 3.0, 1.0))
    curves = valley_curve * scatter
    curves[:, -1] = 50.0
    depth = {name: formula(curves) for name, (formula, _) in valley.depths(curves, 32).items()}
    # Scatter makes the valley of single tokens; blocks and averages see 4, or the last token's 50.
    assert depth["tokens of a sequence"] > 80
    assert depth["blocks of the body"] == pytest.approx(4, rel=0.1)
    assert 45 < depth["tokens of the average"] < 65
    assert depth["blocks of the average"] == pytest.approx(math.sqrt((50**2 + 31 * 9 * 1.04**4) / 32), rel=0.1)
    assert valley.smear(curves, 0.10) == pytest.approx(3.0 ** (1 - (0.12 - 0.10) / 0.10), rel=0.05)
    # Eleven of seventeen tokens of the step to 3 lift a log-mean above ln 2: from three tokens inside it on.
    assert valley.ramp(np.tile(valley_curve, (2, 1))) == 58 / 512
    assert valley.ramp(curves) == pytest.approx(0.12, abs=0.02)
    assert valley.over_middle(curves, -1) == pytest.approx(50, rel=0.05)
    assert valley.kept(curves, 1 / curves) == pytest.approx(-1)
    layout = Layout.of(length, 64)
    flat = np.ones((3, length))
    flat[:, layout.interior] = 2.0
    flat[:, layout.interior[:, None] + np.arange(60, 64)] = 1.5
    # Six of seven boundaries stand at 2, six have two of twenty neighbours at 1.5: the chunks at both ends are bare.
    by_hand = math.exp((6 * math.log(2) - 6 * 0.1 * math.log(1.5)) / 7)
    assert valley.joins(flat, layout) == pytest.approx(by_hand)
    assert valley.local_arms(flat, layout) == pytest.approx((2.0, 1.5))


def test_an_interval_over_paired_sequences() -> None:
    rng = np.random.default_rng(0)
    both = np.exp(rng.standard_normal((20, 1)))
    first, second = 2 * both * np.exp(0.01 * rng.standard_normal((20, 4))), both * np.ones((20, 4))
    paired = drawn_together("r", [first, second], lambda a, b: a.mean() / b.mean(), "m", low=0.0)
    low, high = interval_of(paired)
    assert paired.value == pytest.approx(2, abs=0.02)
    assert 0.001 < high - low < 0.05
    mean = drawn_together("r", [np.log(both)], lambda a: a.mean(), "m")
    low, high = interval_of(mean)
    expected = 2 * 2.09 * float(np.log(both).std(ddof=1)) / math.sqrt(20)
    assert high - low == pytest.approx(expected, rel=0.15)


def test_trained_against_untrained(demo: dict[str, Any]) -> None:
    found = run("trained", "2603.10123", "trained_network", **demo)
    assert found["growth, tokens of a sequence"].value == pytest.approx(
        found["tokens of a sequence, pretrained"].value / found["tokens of a sequence, untrained"].value
    )
    rows = np.array([row[1:] for row in found.rows])
    network = ct.load(demo_path("demo/tiny"), weights="pretrained")
    windows = ct.vanilla_windows(
        ct.read_documents(demo_path("demo/texts.jsonl")), network.tokenizer(), length=64, count=3, seed=0
    )
    energy = ct.measure_jacobian(network, windows, probes=1, seed=0).energy[0, 0, 0, :, 0]
    column = found.fields.index("pretrained, vanilla") - 1
    np.testing.assert_allclose(rows[:, column], np.exp(0.5 * np.log(energy).mean(axis=0)), rtol=1e-5)
    assert found["last over middle, pretrained"].value == pytest.approx(
        rows[-1, column] / np.exp(np.log(rows[29:35, column]).mean()), rel=1e-5
    )


def test_early_training_and_learning(demo: dict[str, Any]) -> None:
    changes = {
        "tokenizer": "demo/tiny", "documents": demo["documents"], "network": {**TINY["llama"], "vocab_size": WORDS + 3},
        "length": 48, "chunk": 8, "seeds": [0, 1], "steps": 6, "every": 3, "early": 3, "sequences": 2,
        "training_documents": 8,
    }  # fmt: skip
    found = run("evolution", "2603.10123", "early_training", **changes)
    assert {(row[0], row[1]) for row in found.rows} == {(s, t) for s in (0, 1) for t in (0, 3, 6)}
    depth = {(row[0], row[1]): math.log10(float(row[2] or 0)) for row in found.rows}
    change = np.mean([depth[s, 6] - depth[s, 0] for s in (0, 1)])
    assert found["change of last/mid"].value == pytest.approx(change)
    learned = run("learning-rate", "2603.10123", "learning_lookup", length=16, seeds=2, most=30)
    assert math.isnan(learned["elasticity"].value) or learned["elasticity"].low is not None
    assert learned["influence at birth, highest over lowest"].value > 1


def test_the_published_rollouts() -> None:
    found = run("rollout-published", "2602.16837", "published_strengths", depths=[64, 128, 256])
    assert found["gap to the published code"].value < 1e-9
    stored = rollout_published.published()
    known = {entry["name"]: entry for entry in GOLDEN["entries"]}
    assert stored["models"]["mpt-7b"]["strengths"] == known["mpt-7b, no content"]["lambdas"]
    assert stored["models"]["mpt-7b"]["content"] == known["mpt-7b, all content"]["content_diagonal"]
    mean = known["mpt-7b, mean content"]
    expected = mean["golden_with_published_bug"]["last"] / mean["golden"]["last"]
    assert found["mean content, last token"].value == pytest.approx(expected, rel=1e-9)
    # Attention alone at two tokens: what is not at the first halves times (2 - lambda) each layer.
    two = {r.name: r for r in rollout_published.by_depth({"short": 2, "first": 1.0, "depths": [64, 128, 256]})}
    left = [math.prod(1 - 0.5 / (t + 1) for t in range(depth)) for depth in (64, 256)]
    slope = math.log(left[1] / left[0]) / math.log(4)
    assert two["exponent at beta = 1"].value == pytest.approx(slope, abs=2e-3)


def test_the_measured_rollout(demo: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_measured, "drawn_together", draws_of(20))
    small = {key: demo[key] for key in ("model", "documents")} | {"length": 48, "windows": 4, "monotone": 2}
    found = run("rollout-measured", "2602.16837", "smollm2_rollout", **small)
    assert found["W1 gained by the residual, influence"].value == pytest.approx(
        found["wasserstein, its own attention, no residual, influence"].value
        - found["wasserstein, its own attention, measured strengths, influence"].value
    )
    columns = {name: k for k, name in enumerate(found.fields)}
    total = sum(float(row[columns["its own attention, measured strengths"]] or 0) for row in found.rows)
    assert total == pytest.approx(1, abs=1e-5)
    assert 0 <= found["violations of monotonicity"].value <= found["largest violations of monotonicity"].value <= 1


def test_the_published_influence_is_the_gradient_of_the_largest_probability() -> None:
    import torch

    network = ct.load({**TINY["llama"], "vocab_size": 50}, dtype="float64")
    windows = token_windows(2, 10)
    influence = rollout_measured.influences(network, windows, Silent())["influence"]
    table = network.module.get_input_embeddings().weight
    for index, row in enumerate(windows.ids):
        vectors = table[torch.tensor(row)][None].detach().requires_grad_(True)
        p = torch.softmax(network.module(inputs_embeds=vectors).logits[0, -1], 0).max()
        (slope,) = torch.autograd.grad(p, vectors)
        np.testing.assert_allclose(influence[index], slope[0].norm(dim=1).numpy(), rtol=1e-6)
    assert isinstance(windows, Windows)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_the_rollout_of_what_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from catenary.models.output_matrix import OutputMatrix

    network, windows, strengths = ct.load(TINY[name], dtype="float64"), token_windows(2, 20), np.array([0.7, 0.2])
    found = written_rollout(network, windows, strengths)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    alike = np.sqrt(ct.measure_rollout(network, windows, schedule=[0.7, 0.2]).energy[0, 0, 0, :, 0])
    assert np.abs(found / alike - 1).max() > 0.05
    # A first token whose values are a tenth of the others' gets less than its attention.
    monkeypatch.setattr(OutputMatrix, "sizes", lambda self, call: torch.ones(1, call.heads, call.length))
    np.testing.assert_allclose(written_rollout(network, windows, strengths), alike, rtol=1e-9)
    small = torch.ones(1, 1, 20)
    small[..., 0] = 0.1
    monkeypatch.setattr(OutputMatrix, "sizes", lambda self, call: small.expand(1, call.heads, 20))
    assert (written_rollout(network, windows, strengths)[:, 0] < 0.5 * alike[:, 0]).all()


def test_noise_is_divided_out_of_a_rank_correlation() -> None:
    rng = np.random.default_rng(0)
    truth, other = rng.standard_normal((2, 4000))
    other = 0.8 * truth + 0.6 * other  # correlated by .8
    first, second = truth + 1.5 * rng.standard_normal((2, 4000))
    r = float(np.corrcoef(first, second)[0, 1])
    seen = float(np.corrcoef((first + second) / 2, other)[0, 1])
    assert seen < 0.6
    reading = Reading("r", seen, "m", seen - 0.02, seen + 0.02)
    found = rollout_measured.over_ceiling(reading, Reading("h", r, "m", floor=0.0))
    assert found.value == pytest.approx(0.8, abs=0.03)
    assert interval_of(found)[1] - interval_of(found)[0] == pytest.approx(0.04 * found.value / seen)
    assert math.isnan(rollout_measured.over_ceiling(reading, Reading("h", -0.1, "m", floor=0.0)).value)
