"""Array annotations are checked while tests run, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from catenary.blocks import Blocks
from catenary.deviation import between
from catenary.errors import InvalidInput
from catenary.statistics import Units
from catenary.theory.positions.kernels import Uniform


def test_an_array_of_another_kind_is_found() -> None:
    with pytest.raises(TypeCheckError, match="values"):
        Blocks(64).means(np.ones(64, dtype=np.float32))


def test_two_sizes_under_one_name_are_found() -> None:
    with pytest.raises(TypeCheckError, match="parameter 'b'"):
        between(np.ones(64), np.ones(65))


def test_the_fields_of_a_dataclass_are_checked() -> None:
    with pytest.raises(TypeCheckError, match="rows"):
        Units(np.ones(64), "rms", "net")


def test_a_wrong_number_meets_our_own_message() -> None:
    with pytest.raises(InvalidInput, match=r"length must be a whole number >= 1, got 2\.5"):
        Uniform(2.5)  # type: ignore[arg-type]
