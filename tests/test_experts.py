"""Mixtures of experts at birth: the router's kernels against loops, quadrature and closed forms, and real layers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import catenary as ct
from catenary.architecture import Bottleneck, Experts, FeedForward, Gate
from catenary.errors import InvalidInput
from catenary.theory.feed_forward import experts as module
from catenary.theory.feed_forward.experts import Weights, routing
from catenary.theory.feed_forward.kernels import activation_kernels
from catenary.theory.feed_forward.mixer import feed_forward_kernels
from oracles import experts as oracle

MIXTRAL = Experts(8, 2, 0.05, "softmax-top")
OLMOE = Experts(64, 8, 0.05, "softmax")
DEEPSEEK = Experts(256, 8, 0.05, "sigmoid", normalised=True, scale=2.5, groups=8, top_groups=4)


def at(weights: Weights, rho: float) -> tuple[float, float]:
    """W and S at one correlation."""
    return float(weights.value(np.array([rho]))[0]), float(weights.slope(np.array([rho]))[0])


def best_of_groups(logits: list[float]) -> list[int]:
    """Two groups of three: the one whose two highest sigmoids are more together, and its two best experts."""
    chance = [1 / (1 + math.exp(-z)) for z in logits]
    quality = [sum(sorted(chance[g : g + 3])[-2:]) for g in (0, 3)]
    start = 0 if quality[0] > quality[1] else 3
    return [start + e for e in oracle.best(logits[start : start + 3], 2)]


CASES = {
    "softmax": (Experts(5, 2, 1.0, "softmax"), oracle.softmax_over_all),
    "softmax-top": (Experts(5, 2, 1.0, "softmax-top"), oracle.softmax_over_chosen),
    "softmax, normalised": (Experts(5, 2, 1.0, "softmax", normalised=True), oracle.softmax_over_chosen),
    "sigmoid": (Experts(5, 2, 1.0, "sigmoid"), oracle.sigmoids),
    "sigmoid, normalised": (Experts(5, 2, 1.0, "sigmoid", normalised=True), oracle.divided_sigmoids),
    "sqrtsoftplus": (Experts(5, 2, 1.0, "sqrtsoftplus", normalised=True), oracle.divided_roots),
    "groups": (Experts(6, 2, 1.0, "sigmoid", normalised=True, groups=2), oracle.divided_sigmoids),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_match_loops_over_draws(name: str) -> None:
    experts, router = CASES[name]

    def choose(logits: list[float]) -> list[int]:
        return best_of_groups(logits) if experts.groups == 2 else oracle.best(logits, experts.top)

    for rho in (0.0, 0.6, 1.0):
        rows = oracle.averages(router, choose, experts.count, 0.8, rho, 700)
        error = rows.std(0) / math.sqrt(len(rows))
        # 4.5 standard errors, and half a per cent for the smoothing.
        assert (np.abs(rows.mean(0) - at(routing(experts, 0.8), rho)) < 4.5 * error + 0.005 * rows.mean(0)).all()


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.3, 0.8, 0.97])
def test_first_of_two_is_the_sign_of_a_difference(rho: float) -> None:
    # One expert of two with weight 1: both tokens choose it when the differences of their logits have one sign.
    value, slope = at(routing(Experts(2, 1, 1.0, "softmax-top"), 0.5), rho)
    assert value == pytest.approx(0.5 + math.asin(rho) / math.pi, rel=4e-3)
    assert slope == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("count", [4, 16])
def test_first_of_many_by_quadrature(count: int) -> None:
    weights = routing(Experts(count, 1, 1.0, "softmax-top"), 0.5)
    for rho in (0.2, 0.5, 0.8, 0.95):
        assert at(weights, rho)[0] == pytest.approx(oracle.same_first_choice(count, rho), rel=6e-3)


def test_one_expert_behind_a_sigmoid_is_a_gate() -> None:
    weights = routing(Experts(1, 1, 1.0, "sigmoid"), 0.6)
    kernels = activation_kernels("sigmoid", math.sqrt(0.6))
    for rho in (-0.2, 0.0, 0.7, 1.0):
        rhos = np.array([rho])
        assert at(weights, rho)[0] == pytest.approx(float(kernels.value(rhos)[0]), rel=1e-3)
        assert at(weights, rho)[1] == pytest.approx(0.6 * float(kernels.derivative(rhos)[0]), rel=2e-3)


@pytest.mark.parametrize("experts", [MIXTRAL, DEEPSEEK])
def test_more_draws_change_nothing(experts: Experts, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = routing(experts, 0.4)
    monkeypatch.setattr(module, "DRAWN_LOGITS", 2 << 20)
    module._sampled.cache_clear()
    more = routing(experts, 0.4)
    module._sampled.cache_clear()
    for rho, allowed in ((0.0, 0.01), (0.1, 0.02), (0.3, 0.015), (0.6, 0.01), (0.9, 0.01), (1.0, 0.004)):
        for one, other in zip(at(usual, rho), at(more, rho), strict=True):
            assert one == pytest.approx(other, rel=allowed)


@pytest.mark.parametrize("preset", ["mixtral-8x7b", "deepseek-v3"])
def test_rounding_does_not_part_a_token_from_itself(preset: str) -> None:
    """A choice's kernel falls as the root of 1 - rho: through 61 layers a rounding of 1e-16 would become .1 dex."""
    model = ct.read_config(preset)
    exact, groups = (ct.predict(model, length=40, method=method).values for method in ("exact", "coarse"))
    assert np.abs(np.log10(groups / exact)).max() < 1e-6  # every group holds one position here
    for rho in (1 - 2**-52, 1 + 2**-52):
        assert at(routing(MIXTRAL, 1.0), rho) == at(routing(MIXTRAL, 1.0), 1.0)


def test_unrelated_tokens_share_experts_by_chance() -> None:
    # Weights that add up to the scale: (scale / count)^2 for each of the experts.
    assert at(routing(MIXTRAL, 0.4), 0.0)[0] == pytest.approx(1 / 8, rel=1e-3)
    assert at(routing(DEEPSEEK, 0.4), 0.0)[0] == pytest.approx(2.5**2 / 256, rel=2e-3)


def test_a_router_of_zeros_gives_every_token_the_same_experts() -> None:
    for experts, expected in ((MIXTRAL, 1 / 2), (OLMOE, 8 / 64**2), (DEEPSEEK, 2.5**2 / 8)):
        tied, nearly = routing(experts, 0.0), routing(experts, 1e-8)
        assert at(tied, 0.3) == (pytest.approx(expected), 0.0)
        # As logits vanish equal tokens tend to the same weights, other tokens do not: their choice stays their own.
        assert at(nearly, 1.0)[0] == pytest.approx(expected, rel=1e-3)
        assert at(nearly, 0.3)[0] < 0.6 * expected


def test_impossible_choices_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"experts.top must be in 1..8, got 9"):
        routing(replace(MIXTRAL, top=9), 0.4)
    with pytest.raises(InvalidInput, match=r"experts.groups must divide 8"):
        routing(replace(MIXTRAL, groups=3), 0.4)


@pytest.mark.parametrize("rho", [0.9, 1.0])
@pytest.mark.parametrize("kind", ["experts", "gate", "experts in a bottleneck"])
def test_a_layer_of_experts_matches_automatic_differentiation(kind: str, rho: float) -> None:
    """Phi and chi of top 2 of 4 gated experts with a shared one, or of a gated output, against drawn layers.

    The routed experts stand between two linear maps or not. At rho = 1 the draws scatter by 5 %; the router's own
    gradient is a tenth of chi and more.
    """
    torch = pytest.importorskip("torch")
    width, inner, std, router = 48, 40, 0.16, 0.2
    shared = FeedForward(inner, True, "silu", std, std, gate=Gate(router, "token"))
    branch = shared
    if kind != "gate":
        branch = FeedForward(inner, True, "silu", std, std, Experts(4, 2, router, "softmax-top", shared=shared))
    if kind == "experts in a bottleneck":
        branch = replace(branch, bottleneck=Bottleneck(80, 0.2, 0.3))
    kernels = feed_forward_kernels(branch, width)
    forward, backward = [], []
    for seed in range(100):
        drawn = torch.Generator().manual_seed(seed)

        def normal(*shape: int, drawn: object = drawn):  # type: ignore[no-untyped-def]
            return torch.randn(*shape, generator=drawn, dtype=torch.float64)  # type: ignore[arg-type]

        front, behind = torch.eye(width, dtype=torch.float64), torch.eye(width, dtype=torch.float64)
        if branch.bottleneck:
            front, behind = 0.2 * normal(80, width), 0.3 * normal(width, 80)
        sizes = [len(front)] * 4 + [width]
        up, gate = ([std * normal(inner, size) for size in sizes] for _ in range(2))
        down = [std * normal(size, inner) for size in sizes]
        choose, weigh = router * normal(4, width), router * normal(width)

        def layer(x, up=up, gate=gate, down=down, choose=choose, weigh=weigh, maps=(front, behind)):  # type: ignore[no-untyped-def]
            z = [maps[0] @ x] * 4 + [x]
            made = [down[e] @ (torch.nn.functional.silu(gate[e] @ z[e]) * (up[e] @ z[e])) for e in range(5)]
            total = torch.sigmoid(weigh @ x) * made[4]
            if kind != "gate":
                values, found = (choose @ x).topk(2)
                total = total + maps[1] @ (torch.softmax(values, 0)[:, None] * torch.stack(made[:4])[found]).sum(0)
            return total

        x, y = normal(width), normal(width)
        x = x * math.sqrt(width) / x.norm()
        y = y - x * (x @ y) / width
        y = rho * x + math.sqrt(1 - rho**2) * y * math.sqrt(width) / y.norm()
        forward.append(float(layer(x) @ layer(y)) / width)
        pair = [torch.func.jacrev(layer)(at) for at in (x, y)]
        backward.append(float((pair[0] * pair[1]).sum()) / width)
    for found, kernel in ((forward, kernels.forward), (backward, kernels.backward)):
        error = np.std(found) / math.sqrt(len(found))
        assert abs(np.mean(found) - float(kernel(np.array([rho]))[0])) < 4 * error + 0.02 * np.mean(found)
        assert error < 0.12 * np.mean(found)


def test_gradients_pass_through_a_gates_own_input() -> None:
    """What chi has more than W chi of the network alone, against the same gradient with the gate's input held still."""
    torch = pytest.importorskip("torch")
    width, inner, std, router = 48, 40, 0.16, 0.2
    alone = FeedForward(inner, True, "silu", std, std)
    gated = feed_forward_kernels(replace(alone, gate=Gate(router, "token")), width)
    value = routing(Experts(1, 1, router, "sigmoid"), width * router**2).value
    one = np.ones(1)
    expected = float((gated.backward(one) - value(one) * feed_forward_kernels(alone, width).backward(one))[0])
    found = []
    for seed in range(150):
        drawn = torch.Generator().manual_seed(seed)
        up, gate, down, weigh, x = (
            scale * torch.randn(*shape, generator=drawn, dtype=torch.float64)
            for scale, shape in (
                (std, (inner, width)), (std, (inner, width)), (std, (width, inner)), (router, (width,)), (1, (width,)),
            )
        )  # fmt: skip
        x = x * math.sqrt(width) / x.norm()

        def layer(at, still=None, up=up, gate=gate, down=down, weigh=weigh):  # type: ignore[no-untyped-def]
            opened = torch.sigmoid(weigh @ (at if still is None else still))
            return opened * (down @ (torch.nn.functional.silu(gate @ at) * (up @ at)))

        whole, still = torch.func.jacrev(layer)(x), torch.func.jacrev(lambda at, x=x, of=layer: of(at, x))(x)
        found.append(float((whole**2).sum() - (still**2).sum()) / width)
    error = np.std(found) / math.sqrt(len(found))
    assert error < 0.25 * expected
    assert abs(np.mean(found) - expected) < 3.5 * error
