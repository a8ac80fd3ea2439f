"""The atlas in a browser: columns sort both ways by key, nothing is asked of the network, no script still shows all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catenary.explore.atlas import survey
from catenary.page.atlas import write_atlas
from test_report_browser import browser, visit  # noqa: F401

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atlas")
    hostile = folder / "hostile.json"
    hostile.write_text(json.dumps({"model_type": "<script>window.hit=1</script>"}))
    found = survey(["llama-3-8b", "gpt2", "qwen2-0.5b", str(hostile)], length=512, knobs=False)
    shares = {row.model: row.numbers()["share last"] for row in found.rows}
    assert shares["llama-3-8b"] < shares["gpt2"]
    assert shares["qwen2-0.5b"] < shares["llama-3-8b"]
    return write_atlas(found, folder)


def order(page: Any) -> list[str]:
    return [row.split("\n")[0] for row in page.locator("#models tbody th").all_inner_texts()]


def test_sorting_by_numbers_and_words(browser: Any, atlas: Path) -> None:  # noqa: F811
    seen = visit(browser, atlas, viewport={"width": 1400, "height": 900})
    page = seen.page
    assert order(page) == ["llama-3-8b", "gpt2", "qwen2-0.5b"]
    button = page.get_by_role("button", name="share last", exact=True)
    button.click()
    assert order(page) == ["qwen2-0.5b", "llama-3-8b", "gpt2"]
    assert page.locator("th[aria-sort='ascending']").inner_text().startswith("share last")
    button.press("Enter")
    assert order(page) == ["gpt2", "llama-3-8b", "qwen2-0.5b"]
    page.get_by_role("button", name="model", exact=True).click()
    assert order(page) == ["gpt2", "llama-3-8b", "qwen2-0.5b"]
    assert page.evaluate("window.hit") is None
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []


def test_without_scripts_on_a_phone(browser: Any, atlas: Path) -> None:  # noqa: F811
    page = visit(browser, atlas, viewport={"width": 360, "height": 740}, java_script_enabled=False).page
    assert len(order(page)) == 3
    assert page.locator("svg.spark").count() == 3
    assert page.get_by_text("not described").count() + page.get_by_text("unknown model_type").count() == 1
    assert page.locator("a[download='atlas.csv']").get_attribute("href").startswith("data:text/csv")
