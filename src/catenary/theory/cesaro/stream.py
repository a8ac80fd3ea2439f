r"""One pass over the positions with one accumulator per layer: the last row of a product of separable mixings.

A separable causal kernel is \(A_{ij} = w_j / W_i\), \(W_i = \sum_{j \le i} w_j\); uniform attention is w = 1. With
the row written as \(w_j y_j / w_L\), a layer does \(y_j \leftarrow (1-a) y_j + a S_j\),
\(S_j = \sum_{i \ge j} q_i y_i\), where the share \(q_i = w_i / W_i\) is the kernel's weight on its own position
(1/i for uniform attention). \(S_j\) needs only later positions, so one walk from the last position to the first
serves all layers at once, with H running sums in place of an array of length L per layer.

The walk is a wave: at step t, layer l stands at position L - 1 - t + l (0-based). No layer waits for another within
a step, so the compiler makes vector instructions of it, where the same loop in the order of the layers is one long
chain of dependent additions. Every addition is of positive numbers, as in the recursion layer by layer.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64

from catenary.compiled import run_compiled


def stream_row(shares: Float64[np.ndarray, " L"], mixings: Float64[np.ndarray, " H"]) -> Float64[np.ndarray, " L"]:
    r"""\(y_j\) after all layers, from \(y = e_L\), in O(HL) time and O(L + H) memory.

    Relative rounding error of order (H + sqrt L) times 1e-16, as long as nothing is below 1e-292: what underflows is
    lost without a word, so the caller looks at the smallest value. The first call in an environment compiles the loop
    (about a second; kept on disk for the next process). Source: derived here, from arXiv 2603.10123, section 3.1.

    Args:
        shares: \(q_i\) in (0, 1], first position first.
        mixings: \(a_l\) in [0, 1].
    """
    out = np.empty(len(shares))
    run_compiled(_mixing_wave, _padded(shares, len(mixings)), mixings, 1 - mixings, out)
    return out


def stream_squares(shares: Float64[np.ndarray, " L"], factors: Float64[np.ndarray, " H"]) -> Float64[np.ndarray, " L"]:
    r"""\(\sum_{r=0}^{H} (f_1 \cdots f_r)^2 s_r(j)^2\), \(s_0 = e_L\), \(s_r(j) = \sum_{i \ge j} q_i s_{r-1}(i)\).

    The same wave as ``stream_row``, in which the sum of squares travels along. Source: derived here.

    Args:
        shares: \(q_i\) in (0, 1], first position first.
        factors: \(f_r \ge 0\).
    """
    out = np.empty(len(shares))
    run_compiled(_square_wave, _padded(shares, len(factors)), factors, out)
    return out


def _padded(shares: Float64[np.ndarray, " L"], layers: int) -> Float64[np.ndarray, " n"]:
    """The shares between two runs of zeros, so that layers that have not begun, or are done, add nothing."""
    return np.concatenate((np.zeros(layers), shares, np.zeros(layers)))


@no_type_check
def _mixing_wave(shares, mixing, keeping, out):  # arrays: (H + L + H), (H), (H), (L)
    layers, length = len(mixing), len(out)
    later = np.zeros(layers)
    here = np.zeros(layers + 1)  # here[l]: what layer l finds at the position it stands at
    next_ = np.zeros(layers + 1)
    here[0] = 1.0
    for step in range(length + layers - 1):
        ahead = shares[layers + length - 1 - step : 2 * layers + length - 1 - step]
        for layer in range(layers):
            later[layer] += here[layer] * ahead[layer]
            next_[layer + 1] = keeping[layer] * here[layer] + mixing[layer] * later[layer]
        position = length + layers - 2 - step
        if position < length:
            out[position] = next_[layers]
        here, next_ = next_, here
        here[0] = 0.0


@no_type_check
def _square_wave(shares, factors, out):  # arrays: (H + L + H), (H), (L)
    layers, length = len(factors), len(out)
    later = np.zeros(layers)
    here = np.zeros(layers + 1)
    next_ = np.zeros(layers + 1)
    squares = np.zeros(layers + 1)
    next_squares = np.zeros(layers + 1)
    here[0] = 1.0
    squares[0] = 1.0
    for step in range(length + layers - 1):
        ahead = shares[layers + length - 1 - step : 2 * layers + length - 1 - step]
        for layer in range(layers):
            later[layer] += factors[layer] * here[layer] * ahead[layer]
            next_[layer + 1] = later[layer]
            next_squares[layer + 1] = squares[layer] + later[layer] * later[layer]
        position = length + layers - 2 - step
        if position < length:
            out[position] = next_squares[layers]
        here, next_ = next_, here
        squares, next_squares = next_squares, squares
        here[0] = 0.0
        squares[0] = 0.0
