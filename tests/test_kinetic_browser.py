"""A page of the kinetic verbs in a browser: complete without scripts, no complaint, nothing asked of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catenary.drawing import PALETTE_DARK
from catenary.page.exhibit import write_exhibit
from catenary.page.kinetic_bridge import bridge_exhibit
from catenary.page.kinetic_profile import profile_exhibit
from test_report_browser import browser, visit  # noqa: F401

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_of_a_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    seen = profile_exhibit(heads=[(1.0, 5.0, 1.0)], times=[1.0, 5.0], M=8)
    return write_exhibit(seen, tmp_path_factory.mktemp("kinetic"))


@pytest.mark.parametrize("scripts", [True, False])
def test_figure_and_table_stand_without_scripts(
    browser: Any, page_of_a_profile: Path, scripts: bool  # noqa: F811
) -> None:
    seen = visit(browser, page_of_a_profile, viewport={"width": 1200, "height": 900}, java_script_enabled=scripts)
    page = seen.page
    assert page.locator("figure svg").count() == 1
    assert page.locator("figure svg .mark-line path").count() == 2
    assert page.locator("figure svg").get_by_text("minimum at 0.195").count() == 1
    assert page.locator("table.numbers tbody tr").count() == 3
    assert page.get_by_text("U shape: primacy, recency").first.is_visible()
    assert page.locator("a[download='profile.csv']").get_attribute("href").startswith("data:text/csv")
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []


def test_dark_and_narrow(browser: Any, page_of_a_profile: Path) -> None:  # noqa: F811
    options = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    page = visit(browser, page_of_a_profile, **options).page
    stroke = page.locator("figure svg .mark-line path").first.evaluate("e => getComputedStyle(e).stroke")
    red, green, blue = (int(PALETTE_DARK[0][k : k + 2], 16) for k in (1, 3, 5))
    assert stroke == f"rgb({red}, {green}, {blue})"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_two_figures_of_the_bridge(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    seen = visit(browser, write_exhibit(bridge_exhibit(c=1.7, lam=2.0, stack="additive", layers=[6, 24, 96]), tmp_path))
    assert seen.page.locator("figure svg").count() == 2
    assert seen.complaints == []
