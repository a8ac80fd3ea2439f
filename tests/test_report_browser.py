"""The report in a browser: charts run, switches work, nothing is asked of the network, names stay inert."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from catenary.drawing import PALETTE_DARK, clean
from catenary.page.report import write_report
from report_curves import predicted, trained, untrained

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hit=1</script><img src=x onerror='window.hit=1'>"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
LIVE = "figure[data-chart='profile'] .live"


@dataclass
class Visit:
    """An open page and everything it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on PATH")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    items = [predicted(), untrained(label=HOSTILE), trained()]
    return write_report(items, tmp_path_factory.mktemp("report"), title=HOSTILE, notes=[HOSTILE])


def visit(browser: Any, report: Path, **options: Any) -> Visit:
    page = browser.new_context(**options).new_page()
    seen = Visit(page)
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(report.as_uri())
    if options.get("java_script_enabled", True):
        page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
    return seen


@pytest.fixture(scope="module")
def light(browser: Any, report: Path) -> Visit:
    """One page in a wide window; each test leaves it as it found it."""
    return visit(browser, report, viewport={"width": 1200, "height": 1400}, color_scheme="light")


@pytest.fixture(scope="module")
def still(browser: Any, report: Path) -> Visit:
    """The same with scripts blocked."""
    return visit(browser, report, viewport={"width": 360, "height": 740}, java_script_enabled=False)


def lines(page: Any, figure: str = "profile") -> int:
    """How many curves a running chart shows."""
    return int(page.locator(f"figure[data-chart='{figure}'] .live .mark-line path").count())


def labels(page: Any) -> list[str]:
    """What stands at the ticks of the axes."""
    return [str(text) for text in page.locator(f"{LIVE} .role-axis-label text").all_text_contents()]


def switch(page: Any, name: str) -> None:
    """Press the button of an axis and wait for the redrawn chart."""
    page.get_by_role("button", name=name, exact=True).first.click()
    page.wait_for_selector(f"figure[data-chart='profile'][data-running='{name.lower()}']")


def test_curves_run_and_nothing_is_asked_or_complained_about(light: Visit, report: Path) -> None:
    assert lines(light.page) == 5
    assert light.page.locator("figure .live svg").count() == 6
    assert light.page.locator("figure .still:visible").count() == 0
    assert light.requests == [report.as_uri()]
    assert light.complaints == []


def test_log_and_linear_redraw_the_axis(light: Visit) -> None:
    before = labels(light.page)
    assert "0" not in before
    switch(light.page, "Linear")
    assert "0" in labels(light.page)
    assert light.page.get_by_role("button", name="Linear").first.get_attribute("aria-pressed") == "true"
    assert lines(light.page) == 5
    switch(light.page, "Log")
    assert labels(light.page) == before
    assert light.complaints == []


def test_single_tokens_are_switched_off_and_block_means_stay(light: Visit) -> None:
    page = light.page
    tokens = page.locator("[data-switch='tokens']")
    assert lines(page) == 2 + 3
    assert lines(page, "profile-first") == 3
    tokens.focus()
    page.keyboard.press("Enter")
    assert tokens.get_attribute("aria-pressed") == "false"
    assert lines(page) == lines(page, "profile-first") == 3
    switch(page, "Linear")
    assert lines(page) == 3
    switch(page, "Log")
    tokens.click()
    assert lines(page) == 5
    assert light.complaints == []


def test_curves_and_bands_are_switched_by_keyboard_and_stay_so_on_the_other_axis(light: Visit) -> None:
    page = light.page
    button = page.locator("[data-curve='trained'] button")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert lines(page) == 1 + 2
    assert lines(page, "profile-last") == 2
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    switch(page, "Linear")
    assert lines(page) == 3
    switch(page, "Log")
    button.focus()
    page.keyboard.press("Space")
    assert lines(page) == 5
    areas = page.locator(f"{LIVE} .mark-area path")
    assert areas.count() == 2
    bands = page.locator("[data-switch='bands']").first
    bands.focus()
    page.keyboard.press("Enter")
    assert areas.count() == 0
    page.keyboard.press("Enter")
    assert areas.count() == 2
    assert light.complaints == []


def test_the_pointer_reads_values(light: Visit) -> None:
    chart = light.page.locator(LIVE)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    for step in range(3):
        light.page.mouse.move(box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2)
    tip = light.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    names, values = (tip.locator(f"td.{part}").all_text_contents() for part in ("key", "value"))
    read = dict(zip(names, values, strict=True))
    assert set(read) == {"curve", "token", "influence", "p16–p84"}
    assert read["curve"] in ("predicted at birth", "trained", clean(HOSTILE))
    position = read["token"].removesuffix(", mean").split("-")
    assert all(1 <= int(token) <= 256 for token in position)
    assert float(read["influence"]) > 0
    assert read["p16–p84"] == "none" or len([float(end) for end in read["p16–p84"].split(" – ")]) == 2
    assert abs(tip.bounding_box()["y"] - box["y"] - box["height"] / 2) < 250
    assert light.complaints == []


def test_the_pointer_reads_ratios_and_means_of_blocks(light: Visit) -> None:
    """Moving along a chart passes over single tokens and over blocks."""
    chart = light.page.locator("figure[data-chart='ratio-1'] .live")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    seen = set()
    for step in range(60):
        light.page.mouse.move(box["x"] + box["width"] * (0.3 + step / 200), box["y"] + box["height"] * 0.4)
        tip = light.page.locator("#vg-tooltip-element td.value")
        seen.add(tuple(tip.all_text_contents()))
    rows = [row for row in seen if row]
    assert rows
    assert all(len(row) == 2 and abs(float(row[1].replace("−", "-"))) < 2 for row in rows)
    assert {row[0].endswith(", mean") for row in rows} == {True, False}


def test_hostile_names_stay_inert(light: Visit) -> None:
    assert light.page.evaluate("window.hit") is None
    assert light.page.locator("img").count() == 0
    assert "<script>window.hit=1</script>" in light.page.locator("h1").inner_text()


def test_print_is_light_and_has_no_switches(light: Visit) -> None:
    light.page.emulate_media(media="print", color_scheme="dark")
    assert light.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light.page.locator(".tools:visible").count() == 0
    assert light.page.locator("figure svg.marks:visible").count() == 6
    assert light.page.pdf(format="A4").startswith(b"%PDF")
    light.page.emulate_media(media="screen", color_scheme="light")


def test_dark_mode_darkens_page_and_charts(light: Visit) -> None:
    page = light.page
    page.emulate_media(color_scheme="dark")
    strokes = page.evaluate(
        f"[...document.querySelectorAll(\"{LIVE} .mark-line path\")].map((path) => getComputedStyle(path).stroke)"
    )
    wanted = [f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})" for colour in PALETTE_DARK[:3]]
    assert set(strokes) == set(wanted)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 26)"
    text = page.locator(f"{LIVE} .role-axis-label text").first
    assert text.evaluate("(label) => getComputedStyle(label).fill") == "rgb(155, 166, 177)"
    page.emulate_media(color_scheme="light")


def test_a_narrow_window_does_not_scroll_sideways(light: Visit) -> None:
    page = light.page
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    for width in (320, 360, 768):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_function(f"document.querySelector(\"{LIVE} svg\").getBoundingClientRect().right <= {width}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
    for name in page.locator("[data-curve] button").all():
        assert name.evaluate("(b) => getComputedStyle(b, '::after').whiteSpace") == "nowrap"
    assert page.locator("table.numbers").first.evaluate("(table) => table.offsetWidth") > 360
    page.set_viewport_size({"width": 1200, "height": 1400})


def test_with_scripts_blocked_pictures_and_tables_are_there(still: Visit, report: Path) -> None:
    page = still.page
    assert page.locator("figure .still svg:visible").count() == 6
    assert page.locator("figure[data-chart='profile'] .still .mark-line path").count() == 2 + 3
    assert page.locator("table.numbers").count() == 5
    assert page.locator(".tools:visible").count() == 0
    assert "U + last-token spike" in page.locator("header").inner_text()
    assert still.requests == [report.as_uri()]


def test_with_scripts_blocked_a_phone_does_not_scroll_sideways(still: Visit) -> None:
    boxes = [part.bounding_box() for part in still.page.locator("h1, h2, p, figure, .still, .scroll, .card").all()]
    ends = [box["x"] + box["width"] for box in boxes if box]
    assert len(ends) > 20
    assert max(ends) <= 360
