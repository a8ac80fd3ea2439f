"""Every causal model type of the installed transformers is measured right, or refused by name with the reason."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from catenary.errors import InvalidInput, MissingResource, NotApplicable
from catenary.models import anatomy, initialise
from catenary.models.model import Model
from catenary.models.unmeasured import UNMEASURED
from families.decoder_table import PAGE, page, read_rows
from families.measuring import build, check, difference, tiny

ROWS = read_rows()
MEASURED = sorted(kind for kind, row in ROWS.items() if "refused" not in row)
PACKAGED = {"gemma3n": "timm"}
"""Types that another package is needed for."""


def test_every_causal_type_of_the_installed_transformers_has_a_row() -> None:
    """A newer transformers with another type fails here by its name."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    assert set(ROWS) == set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert set(ROWS) - set(MEASURED) == {*UNMEASURED, *PACKAGED}
    assert len(MEASURED) >= 160


def test_page_is_up_to_date() -> None:
    """Otherwise: python scripts/verify_measuring.py --docs."""
    assert PAGE.read_text("utf-8") == page(ROWS)


@pytest.mark.parametrize("model_type", MEASURED)
def test_profile(model_type: str) -> None:
    """Against a dense Jacobian, a central difference, eager attention, padding, and the exact energy."""
    found = check(model_type, ROWS[model_type]["final_norm"])
    assert found.row == ROWS[model_type]
    assert found.dense < 1e-5
    assert found.difference < 1e-2
    assert found.eager < 1e-5
    assert found.padded is None or found.padded < 1e-5
    assert abs(found.spread) < 5


@pytest.mark.parametrize("model_type", sorted(UNMEASURED))
def test_refusal(model_type: str) -> None:
    with pytest.raises(NotApplicable, match=f"{model_type} cannot be measured: "):
        build(model_type)


@pytest.mark.parametrize("model_type", sorted(PACKAGED))
def test_a_missing_package_is_named(model_type: str) -> None:
    if importlib.util.find_spec(PACKAGED[model_type]):
        pytest.skip(f"{PACKAGED[model_type]} is installed: the type can be built here")
    with pytest.raises(MissingResource, match=f"{model_type} needs a package that is not installed"):
        build(model_type)


@pytest.mark.parametrize("model_type", sorted(set(UNMEASURED) - {"hrm_text", "prophetnet"}))
def test_without_its_refusal_a_type_fails_in_one_line(model_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a refusal goes when transformers changes; what fails says why by itself, as custom types would."""
    for module in (anatomy, initialise):
        monkeypatch.setattr(module, "check_measurable", lambda _: None)
    with pytest.raises(InvalidInput) as caught:
        build(model_type)
    assert "\n" not in str(caught.value)


def test_autograd_does_not_see_the_loops_of_hrm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its refusal says: a part of the derivative is cut."""
    monkeypatch.setattr(initialise, "check_measurable", lambda _: None)
    module, attention = initialise.draw(_hrm(), 0, "sdpa")
    backbone = module.get_decoder()  # type: ignore[operator]  # HF method
    layers = tuple(backbone.L_module.layers)
    parts = anatomy.Anatomy(backbone.embed_tokens, backbone, layers, None)
    model = Model(module.eval(), parts, "hrm", {}, "untrained", 0, "")
    assert attention == "sdpa"
    assert difference(model, np.arange(3, 11)[None]) > 0.1


def _hrm() -> object:
    config = {**tiny("hrm_text"), "L_cycles": 3, "L_bp_cycles": [1]}
    return initialise.build_config(config, init_std=None, vocabulary=None)
