"""What-if over config fields, sensitivities, and the atlas: against predictions made one by one."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.configs.presets import load_preset
from catenary.errors import InvalidInput, MissingResource, NotApplicable
from catenary.explore.atlas import COLUMNS, MOVED, survey
from catenary.explore.changed import changed_config, read_fields
from catenary.explore.grid import Axis, parse_axis
from catenary.explore.sensitivity import WATCHED, sensitivities
from catenary.explore.variation import SHOWN, vary
from catenary.page.atlas import write_atlas
from catenary.page.trend import trend
from catenary.page.variation import write_variation

QWEN: dict[str, Any] = {**load_preset("qwen2-0.5b").config, "num_hidden_layers": 4}
LENGTH = 96


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=12:48:12", (12, 24, 36, 48)),
        ("n=1:3", (1, 2, 3)),
        ("std=0.01:0.02:0.005", (0.01, 0.015, 0.02)),
        ("w=none,1024", (None, 1024)),
        ("act=relu, silu", ("relu", "silu")),
        ("flag=true,false", (True, False)),
        ("n=2,2,3", (2, 3)),
        ("n=1:9:3,20", (1, 4, 7, 20)),
    ],
)
def test_values_as_a_user_writes_them(text: str, values: tuple[object, ...]) -> None:
    axis = parse_axis(text)
    assert axis.values == pytest.approx(values) if all(isinstance(v, float) for v in values) else axis.values == values
    assert [type(v) for v in axis.values] == [type(v) for v in values]


@pytest.mark.parametrize("text", ["n", "n=", "=3", "n=3:1", "n=1:2:0", "n=1:2:-1", "n=a:b", "n=1:1e9", "n=1:300"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="vary must"):
        parse_axis(text)


def test_a_changed_config_goes_by_the_familys_own_names() -> None:
    gpt2 = load_preset("gpt2").config
    assert changed_config(gpt2, {"num_hidden_layers": 3})["n_layer"] == 3
    assert ct.read_config(changed_config(gpt2, {"num_hidden_layers": 3})).depth == 3
    assert gpt2["n_layer"] == 12
    with pytest.raises(InvalidInput, match="Did you mean 'intermediate_size'"):
        changed_config(QWEN, {"intermediate_sise": 3})
    assert "rms_norm_eps" in read_fields(QWEN)


@pytest.mark.parametrize(("depth", "kinds"), [(3, "ffs"), (5, "ffsff"), (9, "ffsffsffs")])
def test_lists_with_one_entry_per_layer_follow_the_depth(depth: int, kinds: str) -> None:
    words = {"f": "full_attention", "s": "sliding_attention"}
    config = {**QWEN, "num_hidden_layers": 6, "use_sliding_window": True, "sliding_window": 8,
              "layer_types": [words[k] for k in "ffsffs"]}
    changed = changed_config(config, {"num_hidden_layers": depth})
    assert changed["layer_types"] == [words[k] for k in kinds]
    assert ct.read_config(changed).depth == depth


def test_a_text_part_is_changed_where_it_lies() -> None:
    config = {"model_type": "some_vision_model", "text_config": QWEN}
    assert ct.read_config(changed_config(config, {"num_hidden_layers": 2})).depth == 2


def test_every_combination_is_the_prediction_of_its_own_config() -> None:
    axes = [Axis("num_hidden_layers", (2, 3)), Axis("hidden_size", (896, 900, 448))]
    seen: list[tuple[int, int]] = []
    found = vary(QWEN, axes, length=LENGTH, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 6) for n in range(1, 7)]
    assert [dict(v.changes) for v in found.variants] == [
        {"num_hidden_layers": h, "hidden_size": d} for h in (2, 3) for d in (896, 900, 448)
    ]
    for variant, row in zip(found.variants, found.rows(), strict=True):
        if variant.changes["hidden_size"] == 900:
            assert variant.profile is None
            assert "multiple of num_attention_heads" in row["refusal"]
            continue
        assert variant.profile is not None
        alone = ct.predict(ct.read_config({**QWEN, **variant.changes}), length=LENGTH)
        np.testing.assert_array_equal(variant.profile.values, alone.values)
        shape = ct.describe(alone)
        assert row["verdict"] == shape.verdict.words
        assert {name: row[name] for name in SHOWN} == {name: shape[name].value for name in SHOWN}
    table = found.table().splitlines()
    assert len(table) == 7
    assert "refused: hidden_size must be" in table[2]


def test_what_cannot_be_varied_is_refused() -> None:
    for axes, reason in [
        ([], "at least one field"),
        ([Axis("hidden_size", (1,))] * 2, "each once"),
        ([Axis("hidden_size", (448,)), Axis("d_model", (896,))], "'hidden_size and d_model'; they are two names"),
        ([Axis("hidden_size", tuple(range(40))), Axis("intermediate_size", tuple(range(40)))], "at most 1000"),
        ([Axis("hidden_size", (900, 901))], "every combination is refused; the first, hidden_size=900: hidden_size"),
        ([Axis("no_such_field", (1,))], "unknown field"),
    ]:
        with pytest.raises(InvalidInput, match=reason):
            vary(QWEN, axes, length=LENGTH)
    with pytest.raises(MissingResource):
        vary("./no-such-folder", [Axis("hidden_size", (1,))])


def test_sensitivities_are_the_derivatives_of_the_shape() -> None:
    """Against a central difference of a smooth knob with half the step: equal to the second order of the step."""
    found = sensitivities(QWEN, length=LENGTH)
    knob = next(k for k in found.knobs if k.field == "initializer_range")
    step = 1 / 128

    def index(std: float, name: str) -> float:
        profile = ct.predict(ct.read_config({**QWEN, "initializer_range": std}), length=LENGTH)
        return math.log(ct.describe(profile)[name].value)

    for name in WATCHED:
        up, down = index(0.02 * (1 + step), name), index(0.02 * (1 - step), name)
        central = (up - down) / math.log((1 + step) / (1 - step))
        assert knob.elasticity[name] == pytest.approx(central, abs=1e-3)
    strengths = [max(map(abs, k.elasticity.values())) for k in found.knobs]
    assert strengths == sorted(strengths, reverse=True)
    assert {"rope_theta", "vocab_size", "max_position_embeddings"}.isdisjoint(k.field for k in found.knobs)
    depth = next(k for k in found.knobs if k.field == "num_hidden_layers")
    assert (depth.value, depth.moved_to) == (4, 5)
    strongest = found.strongest("first/mid")
    assert strongest is not None
    assert strongest.field in found.table().splitlines()[1]
    assert json.loads(json.dumps(found.to_dict()))["knobs"][0]["field"] == found.knobs[0].field


def test_the_atlas_holds_every_model_once_and_says_what_is_not_covered(tmp_path: Path) -> None:
    refused = tmp_path / "config.json"
    refused.write_text(json.dumps({"model_type": "rwkv", "num_hidden_layers": 2}))
    found = survey(["gpt2", "qwen2-0.5b", str(refused)], length=64)
    assert [row.model for row in found.rows] == ["gpt2", "qwen2-0.5b"]
    assert "rwkv" in found.refused[0].reason
    for row in found.rows:
        numbers = row.numbers()
        assert list(numbers) == list(COLUMNS)
        assert numbers["share first tenth"] + numbers["share body"] + numbers["share last"] == pytest.approx(1)
        assert len(row.knobs) == len(MOVED)
        np.testing.assert_array_equal(row.profile.values, ct.predict(ct.read_config(row.model), length=64).values)
    page = write_atlas(found, tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "atlas.csv").read_text())))
    assert [row["model"] for row in rows[:2]] == ["gpt2", "qwen2-0.5b"]
    assert rows[2]["refusal"]
    text = page.read_text(encoding="utf-8")
    assert text.count('class="spark"') == 2
    assert "http://" not in text.replace("http://www.w3.org", "")
    first = page.read_bytes()
    assert write_atlas(found, tmp_path / "out").read_bytes() == first
    with pytest.raises(NotApplicable, match="no model is covered"):
        survey([str(refused)], length=64)
    with pytest.raises(InvalidInput, match="at least one model"):
        survey([])


def test_the_atlas_shows_no_logit_variance_where_nothing_attends(tmp_path: Path) -> None:
    config = tmp_path / "state.json"
    config.write_text(json.dumps({"model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}))
    found = survey(["toy", str(config)], length=16, knobs=False)
    assert found.table().splitlines()[2].count("no attention") == 1
    assert [record["logit_variance"] is None for record in found.records()] == [False, True]
    text = write_atlas(found, tmp_path / "out").read_text(encoding="utf-8")
    assert text.count(">no attention</td>") == 1


def test_a_variation_is_written_whole(tmp_path: Path) -> None:
    found = vary(QWEN, [Axis("num_hidden_layers", (2, 3)), Axis("hidden_size", (896, 900))], length=LENGTH)
    page = write_variation(found, tmp_path)
    assert page.name == "report.html"
    stored = json.loads((tmp_path / "variation.json").read_text())
    assert stored["vary"] == {"num_hidden_layers": [2, 3], "hidden_size": [896, 900]}
    assert stored["rows"] == json.loads(json.dumps(found.rows()))
    assert (tmp_path / "figures" / "variation.svg").read_text().startswith("<svg")
    drawn = trend(found)["datasets"]["drawn"]
    assert {row["ratio"] for row in drawn if row["order"] == 0} == {1.0}
    many = vary(QWEN, [Axis("num_hidden_layers", tuple(range(1, 9)))], length=24)
    assert write_variation(many, tmp_path / "many").suffix == ".svg"


def test_names_that_only_one_family_maps_are_one_field() -> None:
    with pytest.raises(InvalidInput, match="'max_position_embeddings and n_positions'"):
        vary("gpt2", [Axis("max_position_embeddings", (64,)), Axis("n_positions", (64,))], length=32)


def test_a_row_of_the_atlas_finds_and_reads_its_config_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import catenary.configs.locate as locate

    found: list[object] = []
    held = locate._located
    monkeypatch.setattr(locate, "_located", lambda model, revision: found.append(model) or held(model, revision))
    row = survey(["gpt2"], length=32).rows[0]
    assert [model for model in found if not isinstance(model, dict)] == ["gpt2"]
    assert row.architecture == ct.read_config("gpt2")
    knob = sensitivities("gpt2", length=32).strongest("first/mid")
    assert knob is not None
    assert row.knobs[0].startswith(knob.field)


def test_identical_curves_and_the_meaning_of_argmin_are_said(tmp_path: Path) -> None:
    twin = {**QWEN, "rope_theta": 5e5}
    for name, config in (("a", QWEN), ("b", twin), ("c", {**QWEN, "num_hidden_layers": 5})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    found = survey([str(tmp_path / name) for name in "abc"], length=64, knobs=False)
    first, second, _ = (row.model for row in found.rows)
    assert found.same == ((first, second),)
    assert f"identical: {first}, {second}" in found.table()
    text = write_atlas(found, tmp_path / "out").read_text(encoding="utf-8")
    assert f"<li>{first}, {second}</li>" in text
    assert "argmin is the centre of that lowest block" in text


def test_many_models_are_surveyed_by_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catenary.explore.atlas.os.cpu_count", lambda: 2)
    names = ["gpt2", "toy"] * 8
    seen: list[tuple[int, int, str]] = []
    found = survey(names, length=32, knobs=False, progress=lambda *step: seen.append(step))
    assert [row.model for row in found.rows] == names
    assert seen == [(n + 1, 16, name) for n, name in enumerate(names)]
    for row in found.rows:
        np.testing.assert_array_equal(row.profile.values, ct.predict(row.architecture, length=32).values)


def test_a_step_that_adds_a_part_is_no_slope() -> None:
    """OPT's projections appear once widths differ; one expert layer in two is another kind of network."""
    found = sensitivities("opt-125m", length=64)
    assert {"hidden_size", "word_embed_proj_dim"}.isdisjoint(knob.field for knob in found.knobs)
    assert "ffn_dim" in {knob.field for knob in found.knobs}
