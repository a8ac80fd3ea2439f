"""How deep and how wide: the numbers in which "the valley" of a trained network can be meant, from its sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Blocks
from catenary.boundaries import Layout
from catenary.reproduce.resampling import Curves

Row = Float64[np.ndarray, " m"]
Depth = Callable[[Curves], float]

RUNNING = 17
"""Tokens of the running log-mean on which the width of a ramp is read: its trough is then not one noisy token's."""


def depths(curves: Curves, block: int) -> dict[str, tuple[Depth, str]]:
    """Peak over trough by definition: name, formula of curves (n, L), meaning.

    For an average the highest and the lowest place are those of all of ``curves``: picked anew in every draw of a
    bootstrap, their ratio would be biased upwards.
    """
    body = Blocks(curves.shape[1])
    averaged, in_blocks, in_body = curves.mean(axis=0), _rms(curves.mean(axis=0)[None], block)[0], _body(curves, body)

    def of_average(c: Curves) -> float:
        return _at(c.mean(axis=0), averaged)

    def of_blocks(c: Curves) -> float:
        return _at(_rms(c.mean(axis=0)[None], block)[0], in_blocks)

    def of_body(c: Curves) -> float:
        return _at(_body(c, body), in_body)

    return {
        "tokens of a sequence": (_spread, "highest over lowest token, median over sequences"),
        "blocks of a sequence": (lambda c: _spread(_rms(c, block)),
                                 f"highest over lowest {block}-token block (rms), median over sequences"),
        "tokens of the average": (of_average, "highest over lowest token of the mean norm over sequences"),
        "blocks of the average": (of_blocks, f"highest over lowest {block}-token block (rms) of the mean norm"),
        "blocks of the body": (of_body, "highest over lowest block (log-means), first and last token left out"),
    }  # fmt: skip


def trough(curves: Curves) -> float:
    """x of the lowest block of the body, of the log-average."""
    blocks = Blocks(curves.shape[1])
    return float(blocks.centres[_body(curves, blocks).argmin()])


def smear(curves: Curves, share: float) -> float:
    """Log-mean over the last ``share`` of the context without the last token, over as many tokens before, a ratio."""
    logs, length = np.log(curves).mean(axis=0), curves.shape[1]
    start, before = round((1 - share) * length), round((1 - 2 * share) * length)
    return float(np.exp(logs[start:-1].mean() - logs[before:start].mean()))


def ramp(curves: Curves, times: float = 2.0) -> float:
    """The share of the context in front of its end over which the curve stays ``times`` above its middle.

    Of the log-average, by a running mean over 17 tokens; the last token is left out.
    """
    logs = np.log(curves).mean(axis=0)
    smooth = np.convolve(logs[:-1], np.full(RUNNING, 1 / RUNNING), mode="valid")
    above = smooth > np.log(middle(curves)) + np.log(times)
    run = int(above[::-1].cumprod().sum())
    return (run + RUNNING // 2) / curves.shape[1] if run else 0.0


def middle(curves: Curves) -> float:
    """Log-mean over x in [.45, .55], over sequences."""
    length = curves.shape[1]
    return float(np.exp(np.log(curves[:, round(0.45 * length) : round(0.55 * length)]).mean()))


def over_middle(curves: Curves, place: int) -> float:
    """One token over the middle, log-average."""
    return float(np.exp(np.log(curves[:, place]).mean()) / middle(curves))


def kept(a: Curves, b: Curves) -> float:
    """Rank correlation of the blocks of two log-averages."""
    from catenary.deviation import spearman

    blocks = Blocks(a.shape[1])
    return spearman(_body(a, blocks), _body(b, blocks))


def joins(curves: Curves, layout: Layout) -> float:
    """First tokens of chunks over their neighbours, a ratio (see ``boundary_effect``)."""
    return float(np.exp(layout.ratios(curves).mean()))


def local_arms(curves: Curves, layout: Layout) -> tuple[float, float]:
    """Inside chunks: the first token, and the last four, over the chunk's middle fifth, as ratios of log-averages."""
    inside = layout.inside(curves).mean(axis=0)
    centre = inside[round(0.4 * layout.chunk) : round(0.6 * layout.chunk)].mean()
    return float(np.exp(inside[0] - centre)), float(np.exp(inside[-4:].mean() - centre))


def _spread(rows: Curves) -> float:
    return float(np.median(rows.max(axis=1) / rows.min(axis=1)))


def _rms(curves: Curves, block: int) -> Float64[np.ndarray, "n m"]:
    whole = curves[:, curves.shape[1] % block :].reshape(len(curves), -1, block)
    return np.asarray(np.sqrt((whole**2).mean(axis=2)))


def _body(curves: Curves, blocks: Blocks) -> Row:
    """Norms, not logarithms: log-means of the blocks of the log-average, exponentiated."""
    return np.asarray(np.exp(blocks.means(np.log(curves).mean(axis=0)[None])[0]))


def _at(row: Row, reference: Row) -> float:
    return float(row[reference.argmax()] / row[reference.argmin()])
