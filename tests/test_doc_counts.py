"""Numbers that pages repeat from data: presets, families, errors of the recurrent types."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

from catenary.configs.class_facts import causal_types
from catenary.configs.standing import measured_errors, standing


def test_presets_are_counted_right() -> None:
    """All of them in the change log; the atlas leaves out the toy."""
    presets = [path for path in files("catenary.configs").joinpath("presets").iterdir() if path.name.endswith(".json")]
    assert f"{len(presets)} presets" in Path("CHANGELOG.md").read_text("utf-8")
    assert f"{len(presets) - 1} public models on one page" in Path("README.md").read_text("utf-8")


def test_families_are_counted_right() -> None:
    types = causal_types()
    found = Counter(standing(kind).kind for kind in types)
    log, readme = (" ".join(Path(name).read_text("utf-8").split()) for name in ("CHANGELOG.md", "README.md"))
    assert f"- {len(types)} causal model types" in log
    assert (
        f"{found['verified']} verified against untrained networks, {found['approximate']} approximate, "
        f"{found['refused']} refused by name" in log
    )
    assert f"Of the {len(types)} causal model types of transformers, {found['verified']} are" in readme
    assert f"{found['approximate']} are approximate" in readme
    assert f"{found['refused']} are refused by name" in readme


def test_the_table_of_recurrent_types_is_that_of_the_families() -> None:
    page = Path("docs/recurrent.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)`(?:, (\w+))? \| (\.\d+) \| (\.\d+) \| (\.\d+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert len(rows) >= 9
    for name, variant, *shown in rows:
        row = measured_errors()[f"{name}-{variant}" if variant else name]
        expected = [f"{row[column]:.3f}".removeprefix("0") for column in ("median", "largest", "floor")]
        assert [*shown[:3]] == expected, name
        assert shown[3] == f"{row['plain']:.2f}".removeprefix("0"), name
