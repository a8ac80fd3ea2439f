"""Experts whose weights multiply their inputs, against drawn networks and their automatic derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.architecture import Experts, FeedForward
from catenary.errors import NotApplicable
from catenary.theory.feed_forward.mixer import FeedForwardMixer, feed_forward_kernels
from catenary.theory.positions.pairs import Pairs

torch = pytest.importorskip("torch")

WIDTH, INNER, COUNT = 256, 192, 6
STD, ROUTER = 0.064, 0.05


def branch(top: int, **changes: object) -> FeedForward:
    router = {"score": "sigmoid", "weighed": "input", **changes}
    return FeedForward(INNER, True, "silu", STD, STD, experts=Experts(COUNT, top, ROUTER, **router))  # type: ignore[arg-type]


@pytest.mark.parametrize("top", [1, 2, 5])
def test_kernels_against_drawn_networks(top: int) -> None:
    """Outputs of correlated tokens and one's squared Jacobian. 200 networks give ratios of .97 to .99; here 40 do."""
    generator = torch.Generator().manual_seed(top)
    rhos, networks, tokens = np.array([1.0, 0.6, 0.0]), 40, 64
    outputs, squared = np.zeros(len(rhos)), 0.0

    def normal(*shape: int, std: float = 1.0) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * std

    def network(x: torch.Tensor) -> torch.Tensor:
        logits = x @ router.T
        chosen = logits.topk(top, -1).indices
        total = torch.zeros_like(x)
        for e in range(COUNT):
            mine = (chosen == e).any(-1, keepdim=True)
            inside = torch.sigmoid(logits[:, e, None]) * x
            total = total + mine * ((torch.nn.functional.silu(inside @ gate[e].T) * (inside @ up[e].T)) @ down[e].T)
        return total

    for _ in range(networks):
        router = normal(COUNT, WIDTH, std=ROUTER)
        gate, up = normal(COUNT, INNER, WIDTH, std=STD), normal(COUNT, INNER, WIDTH, std=STD)
        down = normal(COUNT, WIDTH, INNER, std=STD)
        first, other = normal(tokens, WIDTH).requires_grad_(), normal(tokens, WIDTH)
        one = network(first)
        (gradient,) = torch.autograd.grad((one * normal(tokens, WIDTH)).sum(), first)
        squared += float((gradient**2).sum(1).mean()) / WIDTH / networks
        with torch.no_grad():
            for k, rho in enumerate(rhos):
                again = network(rho * first + (1 - rho**2) ** 0.5 * other)
                outputs[k] += float((one * again).sum(1).mean()) / WIDTH / networks
    kernels = feed_forward_kernels(branch(top), WIDTH)
    np.testing.assert_allclose(kernels.forward(rhos), outputs, atol=0.05 * outputs[0])
    assert float(kernels.backward(np.ones(1))[0]) == pytest.approx(squared, rel=0.06)


def test_inputs_of_unequal_sizes_to_first_order() -> None:
    """Two tokens 2 % above and below the mean: the kernels at each one's own size, where the mean's are 5 % off."""
    sizes, experts = np.array([0.98, 1.02]), branch(1)
    outcome = FeedForwardMixer(experts, WIDTH, True).forward(Pairs(np.diag(sizes) + 0.3 * (1 - np.eye(2)), sizes))
    gradient = Pairs(np.ones((2, 2)), np.ones(2))
    own = [feed_forward_kernels(experts, WIDTH, float(size)) for size in sizes]
    mean, one = feed_forward_kernels(experts, WIDTH), np.ones(1)
    forward, backward = ([float(kernel(one)[0]) for kernel in maps] for maps in (
        [kernels.forward for kernels in own], [kernels.backward for kernels in own]
    ))
    np.testing.assert_allclose(outcome.added.same, forward, rtol=0.004)
    np.testing.assert_allclose(outcome.passed.backward(gradient).same, backward, rtol=0.004)
    assert abs(float(mean.forward(one)[0]) / forward[0] - 1) > 0.03
    wide = Pairs(np.eye(2), np.array([0.9, 1.1]))
    with pytest.raises(NotApplicable, match="by more than 10%"):
        FeedForwardMixer(experts, WIDTH, True).forward(wide)


def test_divided_weights_are_refused() -> None:
    for changes in ({"normalised": True}, {"score": "softmax"}):
        with pytest.raises(NotApplicable, match="not divided by their sum"):
            feed_forward_kernels(branch(2, **changes), WIDTH)
