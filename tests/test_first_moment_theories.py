"""What the three parametrised theories owe a caller: a card, provenance that rebuilds them, clear refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from builders import qwen2_like
from catenary.errors import InvalidInput
from catenary.protocols import TokenLaw
from catenary.quantity import PATH_WEIGHT
from catenary.theory import null
from catenary.theory.cesaro import density
from catenary.theory.cesaro import row as cesaro
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.theories import THEORIES

OPTIONS = {"null": {"spike": 2.0}, "cesaro": {"mixing": 0.1}, "cesaro-density": {"mixing": [0.1, 0.3, 0.2]}}


def test_registered() -> None:
    assert THEORIES["null"] is null.NULL
    assert THEORIES["cesaro"] is cesaro.CESARO
    assert THEORIES["cesaro-density"] is density.CESARO_DENSITY


@pytest.mark.parametrize("name", OPTIONS)
def test_profile(name: str) -> None:
    architecture = qwen2_like(depth=3)
    theory = THEORIES[name]
    assert theory.name == name
    assert theory.summary
    profile = theory.predict(architecture, 100, TokenLaw(), OPTIONS[name])
    assert profile.quantity is PATH_WEIGHT
    assert profile.length == 100
    assert (profile.values > 0).all()
    assert profile.card is not None
    assert profile.card.statements
    assert profile.card.width == architecture.width
    assert profile.card.logit_variance == architecture.logit_variance
    record = json.loads(json.dumps(dict(profile.provenance)))
    assert record["theory"] == name
    options = {key: record[key] for key in OPTIONS[name]}
    again = theory.predict(architecture, record["length"], TokenLaw(), options)
    np.testing.assert_array_equal(again.values, profile.values)


def test_cesaro_uses_the_depth() -> None:
    profile = THEORIES["cesaro"].predict(qwen2_like(depth=5), 64, TokenLaw(), {"mixing": 0.2})
    np.testing.assert_array_equal(profile.values, cesaro_row(64, 5, 0.2))
    assert profile.label == "paper's law, mixing 0.2"
    per_layer = THEORIES["cesaro"].predict(qwen2_like(depth=2), 64, TokenLaw(), {"mixing": [0.1, 0.25]})
    assert per_layer.label == "paper's law, mixing 0.1 to 0.25"


@pytest.mark.parametrize("name", ["cesaro", "cesaro-density"])
def test_mixing_must_be_given(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"mixing must be given .*pass mixing=0.1, or fit it with fit_cesaro"):
        THEORIES[name].predict(qwen2_like(), 64, TokenLaw(), {})


@pytest.mark.parametrize("name", OPTIONS)
def test_unknown_options_are_refused(name: str) -> None:
    option = next(iter(OPTIONS[name]))
    with pytest.raises(InvalidInput, match=f"unknown option of theory '{name}'.*Did you mean '{option}'"):
        THEORIES[name].predict(qwen2_like(), 64, TokenLaw(), {option + "s": 1.0})
