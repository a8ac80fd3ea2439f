"""The contract of every model type that transformers can build a causal language model of."""

from __future__ import annotations

import pytest

from catenary.configs.family import FAMILIES
from families.contract import verify
from families.tiny import TINY

pytest.importorskip("transformers")


@pytest.mark.parametrize("model_type", list(TINY))
def test_law_holds_in_real_networks(model_type: str) -> None:
    """Median |log10 predicted/measured| over position groups; the plain law fails where the type's feature acts."""
    case = TINY[model_type]
    found = verify(model_type, case)
    assert found.median <= 0.05, found
    if case.feature:
        assert found.plain > 0.1, found
