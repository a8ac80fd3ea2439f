"""Charts: what is drawn, what is left out and said so, colours that can be told apart, files that appear whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from catenary import charts, figures
from catenary.comparison import compare
from catenary.drawing import KEPT, LONGEST, PALETTE, PALETTE_DARK, clean, curves, kept, unique
from catenary.errors import InvalidInput
from catenary.profile import Profile
from catenary.quantity import SCALAR_GRADIENT
from catenary.sample import Sample
from catenary.shape import describe
from report_curves import predicted, trained, untrained

HOSTILE = '<script>alert(1)</script>"\'&\u2028\u202e\x00\x1b[31m\ud800\U0001f600' + "x" * 10_000


def layer(spec: charts.Spec, name: str) -> charts.Spec:
    return next(entry for entry in spec["layer"] if entry["name"] == name)


def test_every_position_of_a_short_profile_is_drawn_with_its_value() -> None:
    profile = predicted(100)
    data = charts.overlay([profile])["datasets"]["drawn"]
    assert [row["token"] for row in data] == list(range(1, 101))
    np.testing.assert_allclose([row["value"] for row in data], profile.values, rtol=5e-5)
    assert [row["token"] for row in data if "marker" in row] == [100]


def test_band_is_drawn_where_there_is_one_and_only_there() -> None:
    spec = charts.overlay([predicted(), untrained()])
    banded = {row["curve"] for row in spec["datasets"]["drawn"] if "low" in row}
    assert banded == {"untrained"}
    profile = untrained().profile()
    assert profile.low is not None
    row = next(r for r in spec["datasets"]["drawn"] if r["curve"] == "untrained" and r["token"] == 9)
    assert row["low"] == pytest.approx(profile.low[8], rel=5e-5)
    assert [entry["name"] for entry in charts.overlay([predicted()])["layer"]] == ["line", "last", "hover"]
    assert [entry["name"] for entry in spec["layer"]] == [
        "band", "last-band", "tokens", "start", "line", "last", "hover"
    ]


def block_rows(spec: charts.Spec, curve: str) -> list[charts.Spec]:
    return [row for row in spec["datasets"]["drawn"] if row.get("curve") == curve and "block" in row]


@pytest.mark.parametrize(("sample", "log"), [(trained(), True), (untrained(), False)])
def test_a_scattering_curve_is_a_line_through_the_blocks_of_its_verdict(sample: Sample, log: bool) -> None:
    """15 blocks of 16 or 17 tokens, values and bands from the members one by one."""
    spec = charts.overlay([predicted(), sample])
    blocks = block_rows(spec, sample.label)
    members = np.sqrt(sample.energy[0, 0].mean(axis=2).reshape(-1, 256))
    curve = np.exp(np.log(members).mean(axis=0)) if log else np.sqrt((members**2).mean(axis=0))
    covered = 1
    for row in blocks:
        first, last = map(int, row["block"].removesuffix(", mean").split("-"))
        assert first == covered + 1
        covered = last
        assert row["token"] == (first + last) / 2
        assert row["value"] == pytest.approx(np.exp(np.log(curve[first - 1 : last]).mean()), rel=5e-5)
        each = members[:, first - 1 : last]
        own = np.exp(np.log(each).mean(axis=1)) if log else np.sqrt((each**2).mean(axis=1))
        assert [row["low"], row["high"]] == pytest.approx(list(np.quantile(own, [0.16, 0.84])), rel=1e-4)
    assert covered == 255
    assert len(blocks) == 15
    assert f"body of {len(blocks)} blocks of 16 or 17 tokens" in describe(sample).verdict.evidence[0]
    assert not block_rows(spec, "predicted at birth")
    assert spec["title"]["subtitle"] == "Line: means of blocks of 16 to 17 tokens; faint: single tokens"


def test_tokens_stay_behind_the_blocks_and_the_first_is_a_point() -> None:
    spec = charts.overlay([trained()])
    tokens = [row for row in spec["datasets"]["drawn"] if "block" not in row]
    assert len(tokens) == 256
    assert all(row["detail"] for row in tokens)
    assert [row["token"] for row in tokens if "start" in row] == [1]
    picture = figures.to_svg(spec)
    switched = spec | {"params": [p | {"value": False} if p["name"] == "tokens" else p for p in spec["params"]]}
    without = figures.to_svg(switched)
    moves = [re.findall(r'class="mark-line[^>]*>.*?</g>', text, re.S) for text in (picture, without)]
    assert [sum(part.count("L") for part in layers) for layers in moves] == [254 + 14, 14]


@pytest.mark.parametrize(("length", "blocks"), [(81, 0), (82, 5), (5, 0)])
def test_a_short_context_is_drawn_by_its_tokens(length: int, blocks: int) -> None:
    spec = charts.overlay([untrained(length)])
    assert len(block_rows(spec, "untrained")) == blocks
    assert ("detail" in spec["datasets"]["drawn"][0]) == (blocks > 0)


def test_a_close_up_has_no_blocks() -> None:
    spec = charts.overlay([trained()], tokens=(1, 64))
    assert not any("block" in row or "detail" in row for row in spec["datasets"]["drawn"])
    assert "title" not in spec


def test_a_block_with_a_zero_is_a_gap() -> None:
    values = np.ones(256)
    values[100] = 0.0
    spec = charts.overlay([Profile(values, label="gap", average="rms")])
    assert [row["block"] for row in block_rows(spec, "gap") if "value" not in row] == ["86-102, mean"]
    assert figures.to_svg(spec).startswith("<svg")


def test_few_members_give_a_line_without_a_band() -> None:
    sample = untrained()
    three = replace(sample, energy=sample.energy[:, :, :3, :1])
    assert {name for row in block_rows(charts.overlay([three]), "untrained") for name in row} == {
        "curve", "token", "value", "block"
    }


def test_a_trained_sample_is_drawn_as_its_log_mean() -> None:
    (curve,) = curves([trained()])
    np.testing.assert_array_equal(curve.profile.values, trained().profile("log").values)
    assert curve.profile.average == "log"


@pytest.mark.parametrize("length", [LONGEST + 1, 8192, 200_000])
def test_a_long_profile_is_thinned_and_says_so(length: int) -> None:
    values = np.linspace(3, 1, length)
    values[length // 3], values[length // 2] = 9.0, 0.5
    profile = Profile(values)
    index = kept(profile)
    assert index.size <= KEPT
    assert {0, 1, 2, length - 3, length - 2, length - 1, length // 3, length // 2} <= set(index.tolist())
    assert np.diff(index).max() <= length / (KEPT / 2 - 5) + 1
    assert f"{index.size:,} of {length:,} positions drawn" in charts.overlay([profile])["title"]["subtitle"]


def test_nothing_is_thinned_up_to_the_limit() -> None:
    profile = Profile(np.linspace(3, 1, LONGEST))
    assert kept(profile).size == LONGEST
    assert "title" not in charts.overlay([profile])


def test_a_close_up_of_a_long_profile_has_every_token() -> None:
    profile = Profile(np.linspace(3, 1, 5000))
    data = charts.overlay([profile], tokens=(4937, 5000))["datasets"]["drawn"]
    assert [row["token"] for row in data] == list(range(4937, 5001))


@pytest.mark.parametrize("tokens", [(0, 5), (5, 5), (1, 101)])
def test_a_close_up_outside_the_profile_is_refused(tokens: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="tokens must be an interval"):
        charts.overlay([predicted(100)], tokens=tokens)


def test_unequal_lengths_share_the_position_fraction() -> None:
    assert layer(charts.overlay([predicted(100), predicted(200)]), "line")["encoding"]["x"]["field"] == "x"
    assert layer(charts.overlay([predicted(100), predicted(100)]), "line")["encoding"]["x"]["field"] == "token"


def test_zeros_leave_a_gap_on_the_logarithmic_axis_only() -> None:
    values = np.ones(64)
    values[10:30] = 0.0
    profile = Profile(values)
    paths = [re.search(r'class="mark-line.*?<path[^>]* d="([^"]*)"', figures.to_svg(charts.overlay([profile], log=log)))
             for log in (True, False)]
    assert all(paths)
    assert [match.group(1).count("M") for match in paths if match] == [2, 1]


def test_residuals_are_log_ratios_with_two_standard_errors() -> None:
    a, sample = predicted(), untrained()
    b = sample.profile()
    assert b.standard_error is not None
    rows = charts.residuals(a, sample)["datasets"]["drawn"]
    data, blocks = [r for r in rows if "block" not in r], [r for r in rows if "block" in r]
    expected = np.log10(a.values) - np.log10(b.values)
    np.testing.assert_allclose([r["ratio"] for r in data], expected, atol=1e-5, rtol=1e-4)
    row = data[17]
    factor = 1 + 2 * b.standard_error[17] / b.values[17]
    assert 10 ** row["noise"] == pytest.approx(np.exp(factor - 1), rel=1e-4)
    for row in blocks:
        first, last = map(int, row["block"].removesuffix(", mean").split("-"))
        assert row["ratio"] == pytest.approx(expected[first - 1 : last].mean(), abs=1e-5)
    assert len(blocks) == 15


def test_residuals_of_clean_curves_have_no_blocks() -> None:
    data = charts.residuals(predicted(), predicted(label="b"))["datasets"]["drawn"]
    assert not any("block" in row or "detail" in row or "noise" in row for row in data)


def test_residuals_of_a_comparison_have_its_floors_and_lose_its_factor() -> None:
    held = compare(untrained(), trained())
    assert held.shape_only
    data = charts.residuals(held.a, held.b, held)["datasets"]["drawn"]
    ratios = np.array([row["ratio"] for row in data if "ratio" in row and "block" not in row])
    assert np.median(ratios) == pytest.approx(0, abs=1e-5)
    steps = [row for row in data if "from" in row]
    assert [(row["from"] + 0.5, row["to"] - 0.5) for row in steps] == [
        (span.start + 1, span.stop) for span in held.deviation.spans
    ]
    assert [row["noise"] for row in steps] == pytest.approx([2 * (r.floor or 0) for r in held.regions], rel=1e-4)
    absolute = compare(predicted(), untrained())
    drawn = charts.residuals(absolute.a, absolute.b, absolute)["datasets"]["drawn"]
    assert drawn[0]["ratio"] == pytest.approx(np.log10(absolute.a.values[0] / absolute.b.values[0]), abs=1e-4)


def test_residuals_of_unlike_curves_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one length"):
        charts.residuals(predicted(100), predicted(200))
    with pytest.raises(InvalidInput, match="one curve each"):
        charts.residuals(predicted(), trained(conditions=("vanilla", "chunked")))


def test_what_cannot_be_drawn_together_is_refused() -> None:
    with pytest.raises(InvalidInput, match="1 to 6 curves"):
        charts.overlay([])
    with pytest.raises(InvalidInput, match="1 to 6 curves"):
        charts.overlay([predicted()] * 7)
    with pytest.raises(InvalidInput, match="one quantity"):
        charts.overlay([predicted(100), Profile(np.ones(100), SCALAR_GRADIENT)])
    with pytest.raises(InvalidInput, match="Profiles or Samples"):
        charts.overlay([np.ones(10)])  # type: ignore[list-item]


def test_no_two_curves_look_alike_even_without_colour() -> None:
    drawn = curves([predicted(label=f"p{n}") for n in range(3)] + [untrained(label=f"u{n}") for n in range(3)])
    assert len({curve.dash for curve in drawn}) == len({curve.shape for curve in drawn}) == 6
    assert all(curve.dash != (1, 0) for curve in drawn if curve.predicted)


def linear(colour: str) -> np.ndarray:
    channel = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio."""
    light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Machado, Oliveira and Fernandes 2009, severity 1.0, for linear RGB.
PROTAN = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTAN = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]


@pytest.mark.parametrize(("palette", "paper"), [(PALETTE, "#ffffff"), (PALETTE, "#11151a"), (PALETTE_DARK, "#11151a")])
def test_lines_stand_out_from_the_paper(palette: tuple[str, ...], paper: str) -> None:
    assert min(contrast(colour, paper) for colour in palette) >= 3.0


@pytest.mark.parametrize("palette", [PALETTE, PALETTE_DARK])
@pytest.mark.parametrize("eye", [np.eye(3), np.array(PROTAN), np.array(DEUTAN)])
def test_the_first_three_colours_differ_for_every_eye(palette: tuple[str, ...], eye: np.ndarray) -> None:
    """20 units of L*a*b* is well above the 2.3 of a just noticeable difference; dash and marker carry the rest."""
    seen = [lab(eye @ linear(colour)) for colour in palette[:3]]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) >= 20


def test_labels_are_made_printable_short_and_unlike() -> None:
    text = clean(HOSTILE)
    assert len(text) <= 60
    assert text.isprintable()
    assert text.encode().decode() == text
    assert clean("  a\n\tb ") == "a b"
    assert clean("") == "unnamed"
    assert len(clean("word" * 2_500_000)) == 60
    assert unique(["a", "a", "b", "a"]) == ["a", "a (2)", "b", "a (3)"]


def test_a_hostile_label_is_inert_in_the_picture() -> None:
    from xml.etree import ElementTree

    picture = figures.to_svg(charts.overlay([predicted(32, label=HOSTILE), untrained(32)]))
    root = ElementTree.fromstring(picture)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert any("<script>" in (element.text or "") for element in root.iter() if element.tag.endswith("text"))


def test_the_text_alternative_has_the_numbers() -> None:
    profile = predicted(256)
    text = charts.describe([profile])
    for value in (profile.values[0], profile.values[128], profile.values[1:-1].min(), profile.values[-1]):
        assert f"{value:.3g}" in text
    assert "token 255 of 256" in text
    assert charts.overlay([profile])["description"] == text


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_a_chart_is_saved_by_suffix(tmp_path: Path, suffix: str, magic: bytes) -> None:
    target = tmp_path / f"chart{suffix}"
    assert figures.save(charts.overlay([predicted(64)]), target) == target
    assert target.read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_chart_is_not_saved_under_an_unknown_suffix_or_into_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"path must end in one of \.svg, \.png, \.pdf"):
        figures.save(charts.overlay([predicted(64)]), tmp_path / "chart.gif")
    with pytest.raises(InvalidInput, match="existing folder"):
        figures.save(charts.overlay([predicted(64)]), tmp_path / "no" / "chart.svg")
    assert not list(tmp_path.iterdir())


def test_a_chart_is_saved_in_every_format_from_one_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    draw = figures.to_svg
    monkeypatch.setattr(figures, "to_svg", lambda chart: drawn.append(chart) or draw(chart))
    made = figures.save_each(charts.overlay([predicted(64)]), tmp_path / "a.b")
    assert [path.name for path in made] == ["a.b.svg", "a.b.png", "a.b.pdf"]
    assert [path.read_bytes()[:4] for path in made] == [b"<svg", b"\x89PNG", b"%PDF"]
    assert len(drawn) == 1


def test_a_failed_drawing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "chart.svg"
    target.write_text("old")
    monkeypatch.setattr(figures, "to_svg", lambda chart: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        figures.save(charts.overlay([predicted(64)]), target)
    assert target.read_text() == "old"


def test_altair_accepts_the_charts_and_the_same_input_gives_the_same_chart() -> None:
    items = [predicted(64), untrained(64)]
    first, second = (figures.overlay(items).to_json() for _ in range(2))
    assert first == second
    assert json.loads(first)["layer"][2]["name"] == "line"
    assert figures.residuals(*items).to_dict()["layer"]
    assert figures.to_svg(figures.overlay(items)) == figures.to_svg(charts.overlay(items))


def test_the_layer_that_answers_the_pointer_is_not_in_still_pictures() -> None:
    spec = figures.still(charts.overlay([predicted(64)]))
    assert [entry["name"] for entry in spec["layer"]] == ["line", "last"]
    assert "near" not in [param["name"] for param in spec["params"]]


def test_profiles_and_samples_show_themselves_in_a_notebook() -> None:
    assert predicted(64)._repr_html_().startswith("<svg")
    assert trained(64, conditions=("vanilla", "chunked"))._repr_html_().count("chunked") >= 1


def test_the_same_chart_gives_the_same_bytes_and_two_charts_share_no_gradient() -> None:
    def ramp(name: str) -> dict[str, object]:
        colour = {"field": "v", "type": "quantitative", "title": name}
        layer = {"name": "cells", "mark": "rect", "encoding": {"x": {"field": "x", "type": "ordinal"}, "color": colour}}
        return {"data": {"values": [{"x": 0, "v": 0}, {"x": 1, "v": 1}]}, "params": [], "layer": [layer]}

    first, again, other = (figures.to_svg(ramp(name)) for name in ("a", "a", "b"))
    assert first == again
    named = [set(re.findall(r'id="(gradient[^"]*)"', svg)) for svg in (first, other)]
    assert [len(names) for names in named] == [1, 1]
    assert not named[0] & named[1]
    assert named[0] == set(re.findall(r"url\(#(gradient[^)]*)\)", first))
