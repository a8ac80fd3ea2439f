"""The report page as a file: complete, self-contained, inert, deterministic, and true to the curves it was given."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from catenary.comparison import compare
from catenary.errors import InvalidInput
from catenary.page.answer import agreement, answers, ordered, subjects
from catenary.page.claims import Contents, claims
from catenary.page.embed import chart_library, json_text, packed
from catenary.page.report import write_report
from catenary.page.view import averaged, comparison_tables, contents, groups, model_name, parts
from catenary.profile import Profile
from catenary.reading import number
from catenary.sample import Sample
from catenary.shape import describe
from report_curves import predicted, trained, untrained

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&\u2028\u202e\x00\x1b\ud800</title></style>"


class Reader(HTMLParser):
    """Collects elements, their attributes, the scripts, and the visible words."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif not self._inside:
            self.words.append(data)

    def tagged(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    items = [predicted(), untrained(), trained()]
    return write_report(items, tmp_path_factory.mktemp("report"), title="toy", notes=["three windows were skipped"],
                        provenance={"seed": 0, "versions": {"numpy": "2"}})


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    profile = predicted(64, label=HOSTILE)
    assert profile.card is not None
    card = replace(profile.card, statements=(HOSTILE,), assumed=(HOSTILE,), not_expressed=(HOSTILE,))
    profile = replace(profile, card=card, provenance={HOSTILE: HOSTILE, "nested": {"list": [HOSTILE, 1]}})
    sample = untrained(64, label=HOSTILE)
    return write_report([profile, sample], tmp_path_factory.mktemp("hostile") / "page.html", title=HOSTILE * 1000,
                        notes=[HOSTILE], provenance={"name": HOSTILE})


def test_the_page_is_one_file_under_three_megabytes_that_names_no_address(page: Path) -> None:
    assert page.name == "report.html"
    assert page.stat().st_size < 3_000_000
    reader = read(page)
    for tag, attributes in reader.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#")), (tag, name, address)
    style = "".join(re.findall(r"<style>(.*?)</style>", page.read_text(encoding="utf-8"), re.S))
    assert "url(" not in style
    assert "@import" not in style


def test_the_content_policy_allows_exactly_the_scripts_of_the_page(page: Path) -> None:
    reader = read(page)
    policy = next(a["content"] for a in reader.tagged("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    running = [text for attributes, text in reader.scripts if attributes.get("type") != "application/json"]
    assert {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in running} == allowed
    assert len(running) == 2


def test_the_same_input_gives_the_same_bytes(page: Path, tmp_path: Path) -> None:
    again = write_report([predicted(), untrained(), trained()], tmp_path, title="toy",
                         notes=["three windows were skipped"], provenance={"seed": 0, "versions": {"numpy": "2"}})
    assert again.read_bytes() == page.read_bytes()


def test_every_curve_is_named_with_its_verdict_and_numbers(page: Path) -> None:
    text = read(page).text
    for item in (predicted(), untrained(), trained()):
        shape = describe(item)
        assert re.search(f"{shape.label} (computed, no scatter|. nets|.. sequences)? ?{re.escape(shape.verdict.words)}",
                         text)
        assert shape.words() in text
        assert all(line in text for line in shape.verdict.evidence)
        assert shape["peak/trough"].text.split()[0] in text


def test_every_comparison_stands_beside_its_noise_floor(page: Path) -> None:
    text = read(page).text
    held = compare(predicted(), untrained())
    assert held.words() in text
    for reading in held.regions:
        assert reading.floor is not None
        value = f"{reading.value:+.3f}".replace("-", "\u2212")
        assert f"{value} floor {reading.floor:.2g}" in text, reading.name


def test_the_head_answers_for_birth_and_training_and_says_how_well_the_prediction_holds(page: Path) -> None:
    head = read(page).text.partition("The profile")[0]
    birth, after = describe(predicted()), describe(trained())
    assert birth.verdict.words == describe(untrained()).verdict.words
    assert f"At birth {birth.verdict.words.capitalize()}" in head
    assert "Predicted and measured" in head
    assert f"Trained {after.verdict.words}" in head
    peak = after["peak/trough"]
    assert peak.low is not None
    assert peak.high is not None
    assert f"highest / lowest block {number(peak.value)} [{number(peak.low)}, {number(peak.high)}]" in head
    held = compare(predicted(), untrained())
    assert f"{number(held.median_error)} dex" in head
    assert f"noise floor is {number(held.noise_floor)} dex" in head
    worst = max(held.regions, key=lambda reading: abs(reading.value))
    assert f"Farthest off by region: {worst.value:+.3f} dex".replace("-", "\u2212") in head
    assert f"where the noise floor is {number(worst.floor or 0)}." in head


def test_disagreeing_inputs_are_listed_and_kinds_stand_apart() -> None:
    rising = np.linspace(1, 3, 256)
    falls = replace(predicted(label="a"), provenance={"condition": "vanilla"})
    rises = replace(predicted(label="b"), values=rising, provenance={"condition": "chunked"})
    single = parts([falls, rises, untrained(), Profile(rising, label="other")])
    shapes = {part.label: describe(part) for part in single}
    first, second, third = answers(single, shapes)
    assert (first.title, second.title, third.title) == ("At birth, predicted", "At birth, measured", "other")
    assert first.verdicts == (("Primacy + last-token spike", "single documents"), ("Recency", "joined excerpts"))
    assert second.verdicts == (("Primacy + last-token spike", ""),)
    assert [name for name, _ in first.numbers] == ["highest / lowest block", "last token / middle"]
    assert first.numbers[0][1] == " to ".join(number(shapes[name]["peak/trough"].value) for name in "ab")


def test_the_agreement_is_of_random_vectors_and_says_whether_noise_explains_it() -> None:
    def birth(factor: float, condition: str) -> Profile:
        profile = predicted(label=f"p {condition}")
        return replace(profile, values=factor * profile.values, provenance={"condition": condition})

    def measured(condition: str) -> Sample:
        return replace(untrained(label=f"u {condition}"), conditions=(condition,))

    single = parts([birth(2.0, "vanilla"), measured("vanilla"), birth(1.0, "random"), measured("random")])
    held = [compare(single[0], single[1]), compare(single[2], single[3])]
    close, worst = agreement(held, single)
    assert "agree within the noise on random vectors" in close
    assert "on single documents, where" in worst
    assert subjects(held, single)[1] == "Prediction and untrained measurement: random vectors"
    far, _ = agreement(held[:1], single)
    assert "differ by" in far
    assert "on single documents" in far
    assert f"{number(held[0].median_error / held[0].noise_floor)} times the noise floor" in far
    assert agreement([compare(single[0], single[2])], single) == ("", "")


def test_the_prediction_is_compared_first() -> None:
    single = parts([untrained(), trained(), predicted()])
    held = [compare(single[0], single[1]), compare(single[2], single[1]), compare(single[2], single[0])]
    assert [(c.a.label, c.b.label) for c in ordered(held, single)] == [
        ("predicted at birth", "untrained"), ("predicted at birth", "trained"), ("untrained", "trained")
    ]


def test_regions_of_absolute_and_shape_comparisons_share_their_rows(page: Path) -> None:
    assert "unnamed" not in read(page).text
    held = [compare(predicted(), untrained()), compare(untrained(), trained())]
    table = comparison_tables(held, ["one", "two"])[0]
    assert [row.name for row in table.rows] == [span.name for span in held[0].deviation.spans]
    assert table.columns == ("one", "two (shape)")
    assert all(cell.main for row in table.rows for cell in row.cells)


def test_the_card_the_notes_the_provenance_and_the_citation_are_there(page: Path) -> None:
    text = read(page).text
    for words in ("Read as a root mean square.", "epsilon 1e-5", "the RoPE scaling", "three windows were skipped",
                  "versions.numpy", "2603.10123", "2605.09213", "Duerinckx", "not known"):
        assert words in text, words


def test_the_page_says_what_it_does_not_show(page: Path) -> None:
    text = read(page).text
    assert "does not predict retrieval by position" in text
    assert "learning time did not follow the birth profile" in text
    assert "Single tokens of a trained profile scatter" in text


def test_claims_follow_what_is_on_the_page() -> None:
    birth = claims(Contents(True, False, False))
    after = claims(Contents(False, False, True))
    assert any("predict retrieval" in line for line in birth.does_not)
    assert not any("Single tokens" in line for line in birth.does_not)
    assert not any("config" in line for line in after.shows)


def test_still_pictures_are_in_the_page_and_have_words(page: Path) -> None:
    reader = read(page)
    pictures = [a for a in reader.tagged("div") if a.get("role") == "img" and "still" in (a.get("class") or "")]
    assert len(pictures) == 6
    assert all(len(a["aria-label"] or "") > 80 for a in pictures)
    assert len([a for a in reader.tagged("svg") if a.get("class") == "marks"]) == 6
    assert all("hidden" in a for a in reader.tagged("div") if "live" in (a.get("class") or ""))


def test_the_charts_carry_the_curves(page: Path) -> None:
    charts = json.loads(next(text for attributes, text in read(page).scripts if attributes.get("id") == "charts"))
    drawn = charts["profile"]["datasets"]["drawn"]
    blocks = {block["curve"]: block for block in drawn if "block" not in block}
    assert [len(block["value"]) for block in drawn if "block" in block] == [15, 15]
    np.testing.assert_allclose(blocks["predicted at birth"]["value"], predicted().values, rtol=5e-5)
    assert set(blocks) == {"predicted at birth", "untrained", "trained"}
    assert set(charts) == {"profile", "profile-first", "profile-last", "ratio-1", "ratio-2", "ratio-3"}


def test_the_figures_lie_beside_the_page(page: Path) -> None:
    names = {path.name for path in (page.parent / "figures").iterdir()}
    stems = ("profile", "profile-first", "profile-last", "ratio-1", "ratio-2", "ratio-3")
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("svg", "png", "pdf")}
    assert {path.name for path in page.parent.iterdir()} == {"report.html", "figures"}


def test_the_table_link_holds_every_value(page: Path) -> None:
    address = next(a["href"] for a in read(page).tagged("a") if a.get("download") == "profile.csv")
    assert address is not None
    table = base64.b64decode(address.split(",", 1)[1]).decode()
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["curve"] == "trained"]
    np.testing.assert_array_equal([float(row["value"]) for row in rows], trained().profile("log").values)


def test_hostile_names_are_inert(hostile: Path) -> None:
    content = hostile.read_text(encoding="utf-8")
    reader = read(hostile)
    assert not reader.tagged("img")
    assert len(reader.scripts) == 3
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    assert "<script>alert('x')</script>" in reader.text
    assert "\u2028" not in content
    assert "\u202e" not in content
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", content)
    assert hostile.stat().st_size < 3_000_000


def test_embedded_json_cannot_end_its_element_and_reads_back() -> None:
    value = {"</script><!--": "<script>&\u2028\u2029\ud800 é"}
    text = json_text(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="JSON"):
        json_text(float("nan"))


def test_ten_megabytes_of_one_word_end_cleanly(tmp_path: Path) -> None:
    word = "word" * 2_500_000
    profile = replace(predicted(64, label=word), provenance={"model": word, "list": [word]})
    made = write_report([profile], tmp_path, notes=[word])
    assert made.stat().st_size < 3_000_000


@pytest.mark.parametrize("length", [5, 6, 17, 8192])
def test_any_length_has_a_page(tmp_path: Path, length: int) -> None:
    values = np.linspace(2, 1, length)
    made = write_report([Profile(values, label="line")], tmp_path / "made" / "here.HTML")
    assert made.name == "here.HTML"
    assert "How far apart" not in read(made).text
    assert ("positions drawn" in html.unescape(made.read_text(encoding="utf-8"))) == (length > 2000)


def test_many_curves_are_drawn_by_condition() -> None:
    def birth(condition: str) -> Profile:
        return replace(predicted(label=f"predicted, {condition}"), provenance={"condition": condition})

    conditions = ("vanilla", "chunked")
    items = [birth("vanilla"), birth("chunked"), trained(conditions=conditions)]
    single = parts([*items, untrained()])
    assert [len(members) for _, members in groups(single)] == [3, 2]
    assert [heading for heading, _ in groups(single)] == ["One document per window",
                                                         "Excerpts of different documents joined"]
    assert [heading for heading, _ in groups(parts(items))] == [""]


@pytest.mark.slow
def test_eight_long_curves_still_fit(tmp_path: Path) -> None:
    scatter = np.exp(np.random.default_rng(0).standard_normal((8, 8192)))
    items = [Profile(values, label=f"curve {n}", average="log", standard_error=values / 9, low=values / 3,
                     high=3 * values, provenance={"condition": "ab"[n % 2]}) for n, values in enumerate(scatter)]
    made = write_report(items, tmp_path)
    assert made.read_text(encoding="utf-8").count("data-chart=") == 2 * 3 + 6
    assert made.stat().st_size < 3_000_000


def test_equal_cards_are_shown_once(tmp_path: Path) -> None:
    made = write_report([predicted(64, label="one"), predicted(64, label="two")], tmp_path, comparisons=[])
    assert read(made).text.count("one; two trust amber") == 1


@pytest.mark.parametrize("entry", ["toy", {"name": "toy", "weights": "pretrained"}])
def test_the_model_gives_the_title_and_its_weights_the_average(entry: object) -> None:
    sample = replace(trained(64), provenance={"model": entry})
    assert model_name([predicted(64).relabel("x"), sample]) == "toy"
    assert contents([sample]).trained == isinstance(entry, dict)
    assert (averaged(sample).split()[0] == "Log-mean") == isinstance(entry, dict)


def test_a_page_without_a_band_has_no_switch_for_it(tmp_path: Path) -> None:
    made = write_report([predicted(64)], tmp_path)
    assert not [a for a in read(made).tagged("button") if "data-switch" in a]
    assert "Shaded" not in read(made).text


def test_rows_are_packed_into_columns_and_equal_columns_into_one_value() -> None:
    rows = [{"curve": "a", "token": 1, "detail": 1, "start": "circle"}, {"curve": "a", "token": 2, "detail": 1},
            {"curve": "a", "token": 1.5, "block": "1-2"}, {"curve": "b", "token": 1}]
    assert packed(rows) == [
        {"curve": "a", "token": [1, 2], "detail": 1, "start": ["circle", None]},
        {"curve": ["a"], "token": [1.5], "block": ["1-2"]},
        {"curve": ["b"], "token": [1]},
    ]


def test_the_chart_library_is_packed_once_and_a_useless_cache_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import vl_convert

    calls: list[str] = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: calls.append(snippet) or "x = '</script>'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = [str(chart_library.__wrapped__()) for _ in range(2)]
    assert made == ["x = '<\\/script>'"] * 2
    assert len(calls) == 1
    assert [path.name for path in (tmp_path / "catenary").iterdir()] == [f"charts-{version('vl-convert-python')}.js"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert str(chart_library.__wrapped__()) == made[0]
    assert len(calls) == 2


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="items must hold at least one profile"):
        write_report([], tmp_path)


def test_no_comparison_where_none_is_asked_for(tmp_path: Path) -> None:
    made = write_report([predicted(64), untrained(64)], tmp_path, comparisons=[])
    assert "How far apart" not in read(made).text


def test_a_start_that_no_path_reaches_has_no_close_up(tmp_path: Path) -> None:
    values = np.where(np.arange(512) < 100, 0.0, np.linspace(1, 2, 512))
    made = write_report([Profile(values, average="expectation")], tmp_path).read_text(encoding="utf-8")
    assert 'data-chart="profile-last"' in made
    assert 'data-chart="profile-first"' not in made
    assert "100 values are exactly 0" in made
