r"""What the feed-forward does to the paths of attention: its gains alone, its turns alone, or random turns for it.

A layer's Jacobian is \((1+F)(1+V+S)\). At frozen weights and without the feed-forward it is \(1+V\). In its place
\(c \leftarrow (1+F_j)^\top c\) can keep its length and lose its direction (gains), keep its direction and lose its
length (turns), or be a random rotation, the same at every position or another at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catenary.models.extra import torch
from catenary.reproduce.resampling import Curves
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows

WHOLE, FIXED, ALONE = "the network", "scores fixed", "attention alone"
GAINS, TURNS = "feed-forward's gains", "feed-forward's turns"
ONE, EACH = "one random turn", "a random turn at each position"
PATHS = (WHOLE, FIXED, ALONE, GAINS, TURNS, ONE, EACH)


def path_norms(
    network: Any, windows: Windows, answers: Sequence[int], sure: Sequence[float], observer: Observer
) -> tuple[dict[str, Curves], dict[str, Curves]]:
    r"""By path, \(\|\partial p/\partial e_j\|\) of the answers' probabilities p, and \(\|J_j\|_F\) from one probe.

    For a Llama. A random turn flips the signs of a random half of the components (of its own at each position, where
    it is to differ) and rotates by a matrix of the layer's own. Cotangents are those of ``influences``.
    """
    from catenary.measure.feed import prepare
    from catenary.measure.pathways_terms import LayerVjps
    from catenary.measure.probes import cotangent
    from catenary.models.branches import find_branches
    from catenary.models.replay import record_layers
    from catenary.models.undisturbed import undisturbed

    feed, anatomy = prepare(network, windows), network.anatomy
    found: dict[str, list[Any]] = {path: [] for path in PATHS}
    with undisturbed(network.module), counting(observer, "paths", len(windows)) as progress:
        branches, turns = find_branches(anatomy), _turns(len(anatomy.layers), network)
        for index in range(len(windows)):
            replay = record_layers(
                anatomy, feed.vectors([index]), feed.mask([index]), feed.positions([index]), check=False
            )
            probe = torch.zeros_like(replay.stream)
            drawn = cotangent(network.width, seed=0, net=network.seed or 0, sequence=index, probe=0)
            probe[:, -1] = torch.from_numpy(drawn).to(probe)
            slope = sure[index] * _slope(network, replay.stream, answers[index])
            vjps = LayerVjps(replay, branches)
            for path, pair in _down(vjps, [slope, probe], turns, index).items():
                found[path].append([x[0].double().norm(dim=-1).numpy() for x in vjps.enter(pair)])
            progress(index + 1, len(windows))
    curves = {path: np.array(rows) for path, rows in found.items()}
    return {path: part[:, 0] for path, part in curves.items()}, {path: part[:, 1] for path, part in curves.items()}


def _down(vjps: Any, cotangents: list[Any], turns: list[Any], index: int) -> dict[str, list[Any]]:
    """The cotangents at the first layer's input, by path."""
    from catenary.measure.pathways_terms import EVERYTHING, ONLY_FEED_FORWARD, ONLY_VALUES

    moving = {path: vjps.leave(cotangents) for path in PATHS}
    signs = torch.Generator().manual_seed(index)
    shape = moving[EACH][0].shape
    for layer in reversed(range(vjps.replay.depth)):
        moving[WHOLE] = vjps.pull(layer, EVERYTHING, moving[WHOLE])
        through = iter(vjps.pull(layer, ONLY_FEED_FORWARD, [c for path in (FIXED, GAINS, TURNS) for c in moving[path]]))
        moving[FIXED] = [next(through) for _ in cotangents]
        moving[GAINS] = [_sized(before, next(through)) for before in moving[GAINS]]
        moving[TURNS] = [_sized(next(through), before) for before in moving[TURNS]]
        flips = (2 * torch.randint(0, 2, shape, generator=signs) - 1).to(moving[EACH][0])
        moving[ONE] = [c @ turns[layer] for c in moving[ONE]]
        moving[EACH] = [(c * flips) @ turns[layer] for c in moving[EACH]]
        others = [path for path in PATHS if path != WHOLE]
        pulled = iter(vjps.pull(layer, ONLY_VALUES, [c for path in others for c in moving[path]]))
        moving.update({path: [next(pulled) for _ in cotangents] for path in others})
    return moving


def _sized(way: Any, size: Any) -> Any:
    """The directions of one, position by position, at the lengths of the other; 0 stays 0."""
    tiny = torch.finfo(way.dtype).tiny
    return way * (size.norm(dim=-1, keepdim=True) / way.norm(dim=-1, keepdim=True).clamp(min=tiny))


def _turns(depth: int, network: Any) -> list[Any]:
    """A random orthogonal matrix for each layer."""
    rng = np.random.default_rng(0)
    drawn = [np.linalg.qr(rng.standard_normal((network.width, network.width)))[0] for _ in range(depth)]
    return [torch.from_numpy(one).to(network.dtype) for one in drawn]


def _slope(network: Any, stream: Any, answer: int) -> Any:
    """The gradient of one answer's log-probability in the stream in front of the final norm."""
    leaf = stream.detach().requires_grad_(True)
    logits = network.module.lm_head(network.anatomy.backbone.norm(leaf[:, -1])).float()
    (gradient,) = torch.autograd.grad(torch.log_softmax(logits, -1)[0, answer], leaf)
    return gradient
