"""Grids and the averages of every kernel on them, against the exact operators on the same groups of alike tokens."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.architecture import Alibi, Causal, Chunk, HeadGroup, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.bands import Band
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.group_rows import rows
from catenary.theory.positions.groups import positions
from catenary.theory.positions.kernels import operator
from catenary.theory.positions.lags import decaying, lags_up_to, sliding
from catenary.theory.positions.pairs import Half, Pairs
from catenary.theory.positions.places import make_grid
from catenary.theory.positions.portions import each, gauss_rule, merged
from catenary.theory.positions.products import Blocked, Recursion

GROUPED = Grid(np.array([1.0] * 8 + [2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4] + [1] * 6))
KERNELS: list[Kernel] = [
    Causal(), Window(17), Window(20), Window(99), Chunk(48), Alibi(1e-3), Alibi(0.1), Prefix(8), Prefix(20), Prefix(99)
]
ALL = [Causal(), Window(5), Chunk(7), Alibi(0.2), Prefix(6)]


class Members:
    """Functions of pairs of positions from and to their means over groups."""

    def __init__(self, grid: Grid) -> None:
        self.sizes = grid.sizes.astype(int)
        self.group = np.repeat(np.arange(self.sizes.size), self.sizes)

    def apart(self, x: Pairs) -> np.ndarray:
        full = x.matrix[self.group][:, self.group]
        np.fill_diagonal(full, x.same[self.group])
        return full

    def different(self, full: np.ndarray) -> np.ndarray:
        """Means over different members; a group of one holds its own value."""
        size = self.sizes.size
        sums = np.zeros((size, size))
        np.add.at(sums, (self.group[:, None], self.group), full)
        counts = np.multiply.outer(self.sizes, self.sizes).astype(float)
        many = np.flatnonzero(self.sizes > 1)
        own = np.bincount(self.group, full.diagonal())
        sums[many, many] -= own[many]
        counts[many, many] -= self.sizes[many]
        return sums / counts

    def same(self, full: np.ndarray) -> np.ndarray:
        return np.bincount(self.group, full.diagonal()) / self.sizes


def smooth(grid: Grid, excess: float) -> Pairs:
    """Pairs that change slowly over groups, and more of a token with itself."""
    x = grid.centres / grid.length
    matrix = 1 / (1 + np.abs(x - x[:, None])) + 0.3 * np.cos(3 * (x + x[:, None]))
    same = matrix.diagonal() + excess * (1 + x)
    matrix[grid.sizes == 1, grid.sizes == 1] = same[grid.sizes == 1]
    return Pairs(matrix, same)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("excess", [0.0, 5.0])
def test_averages_over_members(kernel: Kernel, excess: float) -> None:
    grid = GROUPED
    members, averages = Members(grid), positions(kernel, grid)
    x, dense = smooth(grid, excess), operator(kernel, grid.length).dense()
    full = members.apart(x)
    for found, half, both in (
        (averages.average(x), full @ dense.T, dense @ full @ dense.T),
        (averages.adjoint(x), dense.T @ full, dense.T @ full @ dense),
    ):
        expected = members.different(both)
        np.testing.assert_allclose(found.full.matrix, expected, rtol=0.03, atol=1e-4 * expected.max())
        same = members.same(both)
        np.testing.assert_allclose(found.full.same, same, rtol=0.02, atol=1e-4 * same.max())
        expected = members.different(half)
        np.testing.assert_allclose(found.half.matrix, expected, rtol=0.03, atol=0.01 * expected.max())


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_single_groups_are_the_operator(kernel: Kernel) -> None:
    grid, rng = Grid(np.ones(19)), np.random.default_rng(0)
    matrix = rng.normal(size=(19, 19))
    matrix += matrix.T
    x, dense = Pairs(matrix, matrix.diagonal().copy()), operator(kernel, 19).dense()
    averages = positions(kernel, grid)
    mean, sent = averages.average(x), averages.adjoint(x)
    np.testing.assert_allclose(mean.full.matrix, dense @ matrix @ dense.T, atol=1e-12)
    np.testing.assert_allclose(mean.full.same, (dense @ matrix @ dense.T).diagonal(), atol=1e-12)
    np.testing.assert_allclose(mean.half.matrix, matrix @ dense.T, atol=1e-12)
    np.testing.assert_allclose(sent.full.matrix, dense.T @ matrix @ dense, atol=1e-12)
    np.testing.assert_allclose(sent.half.matrix, dense.T @ matrix, atol=1e-12)
    b = mean.half * mean.half
    cross = dense @ b.matrix
    np.testing.assert_allclose(
        averages.average_centred(x, b).matrix, dense @ matrix @ dense.T - cross - cross.T, atol=1e-12
    )
    cross = b.matrix @ dense
    np.testing.assert_allclose(
        averages.adjoint_centred(x, b).matrix, dense.T @ matrix @ dense - cross - cross.T, atol=1e-12
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_rows_sum_to_one_and_gradients_are_kept(kernel: Kernel) -> None:
    averages = positions(kernel, GROUPED)
    np.testing.assert_allclose(averages.forward.rows.mass.sum(axis=1), 1, rtol=1e-13)
    ones = Pairs(np.ones((28, 28)), np.ones(28))
    np.testing.assert_allclose(averages.average(ones).full.matrix, 1, rtol=1e-12)
    sent = averages.adjoint(ones).full.matrix
    assert (sent * np.multiply.outer(GROUPED.sizes, GROUPED.sizes)).sum() == pytest.approx(GROUPED.length**2)


@pytest.mark.parametrize("length", [2, 60, 73, 500, 3000])
@pytest.mark.parametrize("kernel", [Causal(), Window(64), Window(700), Chunk(300), Alibi(0.02), Prefix(100)], ids=str)
def test_grids_hold_every_position_once(kernel: Kernel, length: int) -> None:
    grid = make_grid([kernel, Causal()], length)
    assert grid.length == grid.sizes.sum() == length
    assert (grid.sizes >= 1).all()
    assert grid.sizes[-1] == 1
    assert set(grid.kinks) <= set(grid.ends.astype(int))


def test_too_many_groups_are_refused_in_words() -> None:
    with pytest.raises(NotApplicable, match="more than 1500 groups"):
        make_grid([Chunk(100)], 100_000)


def test_a_refusal_names_the_longest_length_that_the_caller_can_pay_for() -> None:
    kernels = [Alibi(0.01), Alibi(0.02)]
    with pytest.raises(NotApplicable, match="2 decays with memories of 50 to 100 tokens") as refused:
        make_grid(kernels, 1_000_000, affordable=200)
    longest = int(str(refused.value).split("length=")[1].split()[0])
    sizes = [make_grid(kernels, length).sizes.size for length in (longest, longest + 1)]
    assert sizes[0] <= 200 < sizes[1]


def test_values_are_spread_with_kinks_and_zeros() -> None:
    grid = make_grid([Window(200)], 500)
    assert {200, 499 - 199, 499 - 2 * 199} <= set(grid.kinks)
    edge = grid.kinks[-2]
    values = np.where(grid.ends > edge, 2.0, 0.5) * grid.centres**-1.5
    where = np.arange(1.0, 501.0)
    np.testing.assert_allclose(grid.spread(values), np.where(where > edge, 2.0, 0.5) * where**-1.5, rtol=1e-12)
    values[grid.ends <= edge] = 0.0
    np.testing.assert_array_equal(grid.spread(values)[:edge], 0.0)


def test_spread_follows_a_bend_and_no_jump() -> None:
    grid = Grid(np.full(40, 6.0))
    logs = np.log(np.arange(1.0, 241.0))
    bent = np.exp(-1.5 * logs + 0.7 * logs**2)
    centres = -1.5 * np.log(grid.centres) + 0.7 * np.log(grid.centres) ** 2
    np.testing.assert_allclose(grid.spread(np.exp(centres)), bent, rtol=1e-12)
    # Beside a jump that no kink announces, a line: nothing outside the values on either side.
    jump = grid.spread(np.where(grid.centres > 120, 2.0, 1.0))
    assert (jump.min(), jump.max()) == (pytest.approx(1), pytest.approx(2))


def test_groups_narrow_behind_each_step_of_few_windows() -> None:
    grid = make_grid([Window(400), Causal()], 20_000, 2 * 399)
    steps = 19_999 - 399 * np.arange(3)
    assert set(steps) <= set(grid.kinks)
    starts = grid.starts[grid.starts >= steps[-1]]
    for step in steps[1:]:
        behind = starts[(starts >= step) & (starts < step + 399)]
        assert (np.diff(behind) <= np.maximum(1, 0.1 * (behind[:-1] - step) + 0.5)).all()
    # Before the farthest step groups stay narrow for 1.5 windows, farther on they do not.
    before = grid.sizes[(grid.starts > steps[-1] - 600) & (grid.ends <= steps[-1])]
    assert before.max() <= 400 / 24 + 1 < grid.sizes.max() / 10
    assert not grid.band.wide[grid.ends > steps[-1] - 600].any()


@pytest.mark.parametrize("kernel", ["decay", "window"])
def test_distances_against_sums_over_tokens(kernel: str) -> None:
    lags = lags_up_to(60)
    v = np.arange(200)
    if kernel == "decay":
        convolution, a = decaying(0.3, lags), (1 - np.exp(-0.3)) * np.exp(-0.3 * v)
    else:
        convolution, a = sliding(17, lags), (v < 17) / 17
    even = np.concatenate(([0.0], lags))
    signed = np.concatenate((-lags[::-1], [0.0], lags))

    def x(distance: np.ndarray) -> np.ndarray:
        return np.interp(np.abs(distance), even, np.exp(-even / 9) + (even == 0))

    def b(distance: np.ndarray) -> np.ndarray:
        return np.interp(distance, signed, np.tanh(signed / 7) + 2)

    apart = v[:, None] - v
    weights = a[:, None] * a
    both = [(weights * x(at + apart)).sum() for at in even]
    np.testing.assert_allclose(convolution.both @ x(even), both, rtol=1e-10)
    one = [a @ x(at - v) for at in signed]
    np.testing.assert_allclose(convolution.half @ x(even), one, rtol=1e-10)
    np.testing.assert_allclose(convolution.half_moved @ x(even), [a @ (v / 2 * x(at - v)) for at in signed], rtol=1e-10)
    back = [a @ (b(at + v) + b(v - at)) for at in even]
    np.testing.assert_allclose(convolution.back @ b(signed), back, rtol=1e-10)
    moved = [a @ (v / 2 * (b(at + v) + b(v - at))) for at in even]
    np.testing.assert_allclose(convolution.back_moved @ b(signed), moved, rtol=1e-10)
    # How far the middle of a pair moves: (u + v) / 2 in all, for each difference u - v.
    middle = (v[:, None] + v) / 2
    if convolution.both_moved is None:
        for difference in (0, 3, -11):
            given = apart == difference
            assert (weights * middle)[given].sum() / weights[given].sum() == pytest.approx(convolution.unit)
    else:
        moved = [(weights * np.abs(apart) / 2 * x(at + apart)).sum() for at in even]
        np.testing.assert_allclose(convolution.both_moved @ x(even), moved, rtol=1e-10)
        rest = ((middle - np.abs(apart) / 2) * weights).sum()
        assert rest == pytest.approx(convolution.unit)


def test_what_part_of_a_group_shares_with_a_single_token() -> None:
    """Tokens unlike each other, singles in front of and behind groups: means over members of A A^T and A^T A."""
    grid = Grid(np.array([1.0] * 12 + [3.0] * 8 + [1.0] * 14))
    members, averages = Members(grid), positions(Window(9), grid)
    x, dense = members.apart, operator(Window(9), grid.length).dense()
    eye = Pairs(np.diag((grid.sizes == 1) * 1.0), np.ones(grid.sizes.size))
    for found, full in (
        (averages.average(eye), dense @ x(eye) @ dense.T), (averages.adjoint(eye), dense.T @ x(eye) @ dense)
    ):
        np.testing.assert_allclose(found.full.same, members.same(full), rtol=1e-12)
        own = members.different(full).diagonal()
        np.testing.assert_allclose(found.full.matrix.diagonal(), own, rtol=0.03, atol=1e-12)


@pytest.mark.parametrize("sizes", [GROUPED.sizes, np.ones(19)], ids=["groups", "singles"])
def test_tilted_adjoints_are_those_of_gradients_with_their_fall(sizes: np.ndarray) -> None:
    """Known times e^{t(L-q)} per token, gradients pass through A_qk e^{t(q-k)}; forward averages stay as they are."""
    grid, tilt, kernel = Grid(sizes), 0.045, Alibi(0.05)
    members, averages = Members(grid), positions(kernel, grid, tilt)
    x, dense = smooth(grid, 2.0), operator(kernel, grid.length).dense()
    factor = np.exp(tilt * np.arange(grid.length - 1.0, -1, -1))
    full = members.apart(x)
    sent = factor[:, None] * (dense.T @ (full / factor / factor[:, None]) @ dense) * factor
    half = factor[:, None] * (dense.T @ (full / factor / factor[:, None])) * factor
    found = averages.adjoint(x)
    rel = 0.02 if (sizes > 1).any() else 1e-12
    np.testing.assert_allclose(found.full.matrix, members.different(sent), rtol=rel)
    np.testing.assert_allclose(found.full.same, members.same(sent), rtol=rel)
    np.testing.assert_allclose(found.half.matrix, members.different(half), rtol=2 * rel, atol=rel * half.max())
    forward, plain = averages.average(x), positions(kernel, grid).average(x)
    np.testing.assert_array_equal(forward.full.matrix, plain.full.matrix)


def test_tilted_distances_are_those_of_a_gentler_slope_that_gains() -> None:
    lags, v, tilt = lags_up_to(60), np.arange(900), 0.27
    tilted, a = decaying(0.3, lags, tilt), (1 - np.exp(-0.3)) * np.exp(-(0.3 - tilt) * v)
    even = np.concatenate(([0.0], lags))

    def x(distance: np.ndarray) -> np.ndarray:
        return np.interp(np.abs(distance), even, np.exp(-even / 9) + (even == 0))

    apart = v[:, None] - v
    weights = a[:, None] * a
    both = [(weights * x(at + apart)).sum() for at in even]
    np.testing.assert_allclose(tilted.both @ x(even), both, rtol=1e-9)
    moved = [(weights * np.abs(apart) / 2 * x(at + apart)).sum() for at in even]
    np.testing.assert_allclose(tilted.both_moved @ x(even), moved, rtol=1e-7)
    signed = np.concatenate((-lags[::-1], [0.0], lags))
    np.testing.assert_allclose(tilted.half @ x(even), [a @ x(at - v) for at in signed], rtol=1e-9)
    np.testing.assert_allclose(tilted.half_moved @ x(even), [a @ (v / 2 * x(at - v)) for at in signed], rtol=1e-7)


def test_means_over_wide_groups_against_their_members() -> None:
    sizes = np.array([5.0, 7, 6, 6])
    lags = np.arange(1.0, 30)
    band = Band(sizes, lags, np.array([True, True, True, False]))
    group = np.repeat(np.arange(4), sizes.astype(int))
    at = np.arange(group.size)
    near = np.exp(-np.append(0.0, lags) / 4)
    full = near[np.abs(at[:, None] - at)]
    x = Pairs(np.zeros((4, 4)), np.ones(4), np.tile(near[1:], (4, 1)))
    found = band.pairs(x)
    for g, h in ((0, 0), (1, 1), (0, 1), (1, 2), (2, 0)):
        members = full[np.ix_(group == g, group == h)]
        mean = members.mean() if g != h else (members.sum() - len(members)) / (len(members) * (len(members) - 1))
        assert found[g, h] == pytest.approx(mean, rel=1e-12)
    np.testing.assert_array_equal(found[3], 0.0)
    forward = np.interp(np.arange(-29.0, 30), (-29, 29), (1, 3))
    half = band.half(Half(np.zeros((4, 4)), np.tile(forward, (4, 1))))
    full = np.interp(at - at[:, None], (-29, 29), (1, 3))
    for g, h in ((1, 1), (0, 1), (1, 0), (2, 0)):
        assert half[g, h] == pytest.approx(full[np.ix_(group == g, group == h)].mean(), rel=1e-12)


@pytest.mark.parametrize("kernel", [Causal(), Alibi(0.1)], ids=str)
def test_recursions_are_the_matrix(kernel: Kernel) -> None:
    grid = Grid(np.array([1.0] * 200 + [3.0] * 60 + [1.0] * 60))
    of, x = rows(kernel, grid), np.random.default_rng(0).normal(size=(320, 5))
    assert isinstance(of.paid, Recursion)
    np.testing.assert_allclose(of.paid.times(x), of.mass @ x, rtol=1e-9, atol=1e-12)
    sent = (of.mass * grid.sizes[:, None] / grid.sizes).T
    np.testing.assert_allclose(of.received.times(x), sent @ x, rtol=1e-9, atol=1e-12)


def test_blocks_are_the_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = np.tril(np.triu(rng.normal(size=(130, 130)), -9), 3)
    x, weights = rng.normal(size=(130, 4)), rng.normal(size=130)
    np.testing.assert_allclose(Blocked(matrix).times(x), matrix @ x, atol=1e-12)
    np.testing.assert_allclose(Blocked(matrix).between(weights), (matrix * weights) @ matrix.T, atol=1e-12)


def test_portions_of_heads() -> None:
    groups = (HeadGroup(3, Causal()), HeadGroup(1, Window(5)))
    assert [portion.share for portion in each(groups)] == [0.75, 0.25]
    assert merged(groups) == each(groups)


def test_a_gauss_rule_is_exact_for_polynomials() -> None:
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=30), rng.uniform(size=30)
    rule = gauss_rule(points, weights, 5)
    for power in range(10):
        assert rule.weights @ rule.nodes**power == pytest.approx(weights @ points**power, rel=1e-9, abs=1e-11)
    assert abs(rule.weights @ rule.nodes**10 / (weights @ points**10) - 1) > 1e-3
    ended = gauss_rule(points, weights, 5, points.min())
    assert ended.nodes.min() == pytest.approx(points.min(), rel=1e-12)
    assert (ended.weights > 0).all()
    for power in range(9):
        assert ended.weights @ ended.nodes**power == pytest.approx(weights @ points**power, rel=1e-9, abs=1e-11)


def test_nine_slopes_stand_for_thirty_two() -> None:
    length = 400
    heads = tuple(HeadGroup(1, Alibi(2 ** (-8 * k / 32))) for k in range(1, 33))

    def rows_of(portions: tuple) -> np.ndarray:
        last = np.eye(length)[-1]
        return sum(p.share * operator(p.kernel, length).adjoint(last) ** 2 for p in portions)

    portions = merged(heads)
    assert len(portions) == 9
    assert min(portion.kernel.slope for portion in portions) == pytest.approx(2**-8, rel=1e-12)
    assert sum(portion.share for portion in portions) == pytest.approx(1)
    np.testing.assert_allclose(rows_of(portions)[100:], rows_of(each(heads))[100:], rtol=4e-3)
