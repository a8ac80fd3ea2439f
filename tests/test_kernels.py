"""Every kernel's scans against its dense matrix, exact fractions, and each other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.positions.kernels import Chunked, Decaying, Prefixed, Uniform, Windowed, operator
from catenary.theory.positions.running import decaying_sum, later_sum, running_sum, sliding_sum
from oracles.kernels import dense, exact_adjoint, exact_average

KERNELS: list[Kernel] = [
    Causal(), Window(1), Window(4), Window(7), Window(200), Chunk(1), Chunk(5), Chunk(8), Chunk(200),
    Alibi(1e-4), Alibi(2**-8), Alibi(0.5), Alibi(8.0), Prefix(1), Prefix(6), Prefix(200),
]
UNIFORM = [kernel for kernel in KERNELS if not isinstance(kernel, Alibi)]
LENGTHS = [1, 2, 3, 8, 17, 64]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)
every_uniform = pytest.mark.parametrize("kernel", UNIFORM, ids=str)
every_length = pytest.mark.parametrize("length", LENGTHS)


@every_kernel
@every_length
def test_the_matrix_and_its_rows_sum_to_one(kernel: Kernel, length: int) -> None:
    matrix = operator(kernel, length).dense()
    np.testing.assert_allclose(matrix, dense(kernel, length), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-13)


@every_kernel
@every_length
def test_counts_are_participation_numbers(kernel: Kernel, length: int) -> None:
    expected = 1 / (dense(kernel, length) ** 2).sum(axis=1)
    np.testing.assert_allclose(operator(kernel, length).counts, expected, rtol=1e-11)


@every_kernel
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(kernel: Kernel, axis: int) -> None:
    length = 11
    shape = [3, 4, 5]
    shape[axis] = length
    x = np.random.default_rng(1).normal(size=shape)
    scan, matrix = operator(kernel, length), dense(kernel, length)

    def along(m: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.tensordot(m, x, axes=(1, axis)), 0, axis)

    np.testing.assert_allclose(scan.average(x, axis), along(matrix), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(scan.adjoint(x, axis), along(matrix.T), rtol=1e-11, atol=1e-13)


@every_kernel
@every_length
def test_adjoint_is_the_transpose(kernel: Kernel, length: int) -> None:
    scan, rng = operator(kernel, length), np.random.default_rng(3)
    x, y = rng.uniform(size=length), rng.uniform(size=length)
    assert y @ scan.average(x) == pytest.approx(scan.adjoint(y) @ x, rel=1e-13)


@every_uniform
@every_length
def test_positive_numbers_of_any_size_keep_their_digits(kernel: Kernel, length: int) -> None:
    # Eighty decades within one vector: a difference of running sums would lose every digit behind a large entry.
    values = 10.0 ** np.random.default_rng(4).uniform(-40, 40, size=length)
    exact = [Fraction(value) for value in values]
    for found, expected in (
        (operator(kernel, length).average(values), exact_average(kernel, exact)),
        (operator(kernel, length).adjoint(values), exact_adjoint(kernel, exact)),
    ):
        np.testing.assert_allclose(found, [float(value) for value in expected], rtol=1e-14)


@pytest.mark.parametrize("slope", [1e-4, 0.01, 0.5, 8.0])
def test_decay_at_a_million_positions(slope: float) -> None:
    length = 1_000_000
    scan = operator(Alibi(slope), length)
    np.testing.assert_allclose(scan.average(np.ones(length)), 1, rtol=1e-12)
    last = np.zeros(length)
    last[-1] = 1.0
    row = scan.adjoint(last)
    with mp.workdps(30):
        total = (1 - mp.exp(-mp.mpf(slope) * length)) / (1 - mp.exp(-mp.mpf(slope)))
        for distance in (0, 1, 50, 85):
            expected = mp.exp(-mp.mpf(slope) * distance) / total
            assert row[-1 - distance] == pytest.approx(float(expected), rel=1e-12)
    assert (row[row > 0] >= np.finfo(float).tiny).all()


def test_limits_of_every_family() -> None:
    causal, x = operator(Causal(), 40), np.random.default_rng(5).uniform(size=40)
    for kernel in (Window(40), Chunk(40), Prefix(1)):
        np.testing.assert_allclose(operator(kernel, 40).average(x), causal.average(x), rtol=1e-14)
    errors = [abs(operator(Alibi(m), 40).average(x) / causal.average(x) - 1).max() for m in (1e-4, 1e-5)]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.01)
    np.testing.assert_array_equal(operator(Window(1), 40).average(x), x)


def test_sums_against_loops() -> None:
    x = np.random.default_rng(6).normal(size=23)
    for period in (1, 4, 23, 30):
        for offset in range(min(period, 6)):
            starts = [max((s for s in range(i + 1) if s % period == offset), default=0) for i in range(23)]
            expected = [x[s : i + 1].sum() for i, s in enumerate(starts)]
            np.testing.assert_allclose(running_sum(x, 0, period, offset), expected, atol=1e-13)
        ends = [min((e for e in range(j + 1, 23) if e % period == 0), default=23) for j in range(23)]
        np.testing.assert_allclose(later_sum(x, 0, period), [x[j:e].sum() for j, e in enumerate(ends)], atol=1e-13)
        expected = [x[max(0, i - period + 1) : i + 1].sum() for i in range(23)]
        np.testing.assert_allclose(sliding_sum(x, period), expected, atol=1e-13)
    expected = [sum(0.7 ** (i - j) * x[j] for j in range(i + 1)) for i in range(23)]
    np.testing.assert_allclose(decaying_sum(x, 0.7), expected, atol=1e-13)


@every_kernel
def test_input_is_left_alone_and_may_be_a_view_or_of_another_type(kernel: Kernel) -> None:
    scan, matrix = operator(kernel, 6), dense(kernel, 6)
    x = np.arange(36).reshape(6, 6).T
    before = x.copy()
    for axis in (0, 1):
        scan.average(x, axis)
        scan.adjoint(x, axis)
    np.testing.assert_allclose(scan.average(x, 0), matrix @ x, rtol=1e-12)
    np.testing.assert_allclose(scan.adjoint(x, 1), x @ matrix, rtol=1e-12)
    np.testing.assert_array_equal(x, before)


def test_a_million_positions_take_one_pass() -> None:
    kernel = Uniform(1_000_000)
    last = np.zeros(kernel.length)
    last[-1] = 1.0
    np.testing.assert_array_equal(kernel.adjoint(last), np.full(kernel.length, 1e-6))


def test_operator_of_a_head_group() -> None:
    assert operator(Causal(), 5) == Uniform(5)
    assert operator(Window(3), 5) == Windowed(5, 3)
    assert operator(Chunk(3), 5) == Chunked(5, 3)
    assert operator(Alibi(0.1), 5) == Decaying(5, 0.1)
    assert operator(Prefix(3), 5) == Prefixed(5, 3)

    @dataclass(frozen=True)
    class Spiral:
        pass

    with pytest.raises(NotApplicable, match="Spiral"):
        operator(Spiral(), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, -3, 2.5, True])
def test_refuses_what_is_no_size(size: object) -> None:
    with pytest.raises(InvalidInput, match="length must be a whole number >= 1"):
        Uniform(size)  # type: ignore[arg-type]
    for kernel in (Windowed, Chunked):
        with pytest.raises(InvalidInput, match="width must be a whole number >= 1"):
            kernel(5, size)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="prefix must be a whole number >= 1"):
        Prefixed(5, size)  # type: ignore[arg-type]


@pytest.mark.parametrize("slope", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_a_slope_that_does_not_decay(slope: float) -> None:
    with pytest.raises(InvalidInput, match="slope must be finite and > 0"):
        Decaying(5, slope)


@every_kernel
@pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((5, 4), 1), ((5,), 1), ((4, 4), 0)])
def test_refuses_an_array_of_another_length(kernel: Kernel, shape: tuple[int, ...], axis: int) -> None:
    for scan in (operator(kernel, 5).average, operator(kernel, 5).adjoint):
        with pytest.raises(InvalidInput, match="must have 5 entries along axis"):
            scan(np.zeros(shape), axis)
