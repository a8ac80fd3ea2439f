"""The uniform causal kernel's scans against its dense matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from catenary.architecture import Causal
from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.kernels import Uniform, operator
from oracles.cesaro import dense_kernel

LENGTHS = [1, 2, 3, 17, 64]


@pytest.mark.parametrize("length", LENGTHS)
def test_dense_is_the_cesaro_matrix(length: int) -> None:
    matrix = Uniform(length).dense()
    np.testing.assert_array_equal(matrix, dense_kernel(length))
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("length", LENGTHS)
def test_vectors(length: int) -> None:
    kernel, matrix = Uniform(length), dense_kernel(length)
    x = np.random.default_rng(0).normal(size=length)
    np.testing.assert_allclose(kernel.average(x), matrix @ x, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.adjoint(x), matrix.T @ x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(axis: int) -> None:
    length = 11
    shape = [3, 4, 5]
    shape[axis] = length
    kernel, matrix = Uniform(length), dense_kernel(length)
    x = np.random.default_rng(1).normal(size=shape)

    def along(m: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.tensordot(m, x, axes=(1, axis)), 0, axis)

    np.testing.assert_allclose(kernel.average(x, axis), along(matrix), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.adjoint(x, axis), along(matrix.T), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("length", LENGTHS)
def test_both_sides_of_a_matrix(length: int) -> None:
    kernel, matrix = Uniform(length), dense_kernel(length)
    x = np.random.default_rng(2).normal(size=(length, length))
    np.testing.assert_allclose(kernel.average_both(x), matrix @ x @ matrix.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.adjoint_both(x), matrix.T @ x @ matrix, rtol=1e-12, atol=1e-13)


def test_adjoint_is_the_transpose() -> None:
    kernel, rng = Uniform(40), np.random.default_rng(3)
    x, y = rng.normal(size=40), rng.normal(size=40)
    assert y @ kernel.average(x) == pytest.approx(kernel.adjoint(y) @ x, rel=1e-13)


def test_input_is_left_alone_and_may_be_a_view_or_of_another_type() -> None:
    kernel, matrix = Uniform(6), dense_kernel(6)
    x = np.arange(36).reshape(6, 6).T
    before = x.copy()
    np.testing.assert_allclose(kernel.average(x, 0), matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(kernel.adjoint(x, 1), x @ matrix, rtol=1e-13)
    np.testing.assert_array_equal(x, before)


def test_a_million_positions_take_one_pass() -> None:
    kernel = Uniform(1_000_000)
    last = np.zeros(kernel.length)
    last[-1] = 1.0
    np.testing.assert_array_equal(kernel.adjoint(last), np.full(kernel.length, 1e-6))


def test_operator_of_a_head_group() -> None:
    assert operator(Causal(), 5) == Uniform(5)

    @dataclass(frozen=True)
    class Spiral:
        pass

    with pytest.raises(NotApplicable, match="Spiral"):
        operator(Spiral(), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [0, -3, 2.5, True])
def test_refuses_a_length_that_is_no_size(length: object) -> None:
    with pytest.raises(InvalidInput, match="length must be a whole number >= 1"):
        Uniform(length)  # type: ignore[arg-type]


@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((5, 4), 1), ((5,), 1), ((4, 4), 0)])
def test_refuses_an_array_of_another_length(shape: tuple[int, ...], axis: int) -> None:
    for scan in (Uniform(5).average, Uniform(5).adjoint):
        with pytest.raises(InvalidInput, match="must have 5 entries along axis"):
            scan(np.zeros(shape), axis)
