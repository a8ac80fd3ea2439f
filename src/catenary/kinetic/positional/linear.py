r"""The response of finitely many tokens to small changes, before the limit of long prompts.

\(N\,[e^{c\omega} - 1]_{N,i}\) with the attention weights \(\omega_{j,k} = b((j-k)/N)/Z_j\), k < j; N positions count
from 1 here and from 0 in code. The first token attends to nothing. It tends to ``positional_response`` as 1/N.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import at_least_zero, one_number, whole
from catenary.kinetic.positional.kernels import Exponentials, PositionalKernel, checked_kernel

Row = Float64[np.ndarray, " N"]


def linear_response(tokens: int, *, c: float, kernel: PositionalKernel) -> Row:
    r"""\(N\,[e^{c\omega} - 1]_{N,i}\) for every source i, the last row of an exponential of the attention matrix.

    The last row passes backwards through \(\omega\) once per power; a sum of exponentials does this by one scan per
    exponential, in O(N) each, any other kernel by fast Fourier transforms. Relative error about 1e-14 with scans, about
    1e-15 of the largest entry with transforms. Source: derived here.

    Args:
        tokens: N >= 2.
        c: rate times time, >= 0.
        kernel: b.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value exceeds float64.

    >>> linear_response(2, c=0.5, kernel=Exponentials([1.0], [3.0])).tolist()  # the second token sees the first alone
    [1.0, 0.0]
    """
    tokens = whole("tokens", tokens, 2, hint="the first token has no earlier one")
    checked_kernel(kernel)
    rate = one_number("c", at_least_zero("c", c))
    back = _scans(kernel, tokens) if isinstance(kernel, Exponentials) else _transforms(kernel, tokens)
    row = np.zeros(tokens)
    row[-1] = tokens
    total, order = np.zeros(tokens), 0
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            order += 1
            row = back(row) * (rate / order)
            total = total + row
            if order > rate and (row <= 1e-17 * total).all():
                break
    if not np.isfinite(total).all():
        raise NotApplicable("values must stay below 1e308; use a smaller c")
    return total


def _scans(kernel: Exponentials, tokens: int) -> Callable[[Row], Row]:
    r"""Entry k of \(\omega^\top v\): \(\sum_p s_p \sum_{j>k} \rho_p^{j-k} v_j/Z_j\), \(\rho_p = e^{-\lambda_p/N}\)."""
    from scipy.signal import lfilter

    ratios = [math.exp(-decay / tokens) for decay in kernel.decays]
    ones = np.ones(tokens)
    terms = list(zip(kernel.shares, ratios, strict=True))
    norms = np.asarray(sum(share * lfilter([0.0, ratio], [1.0, -ratio], ones) for share, ratio in terms))

    def back(row: Row) -> Row:
        scaled = np.divide(row, norms, out=np.zeros(tokens), where=norms > 0)[::-1]
        return np.asarray(sum(share * lfilter([0.0, ratio], [1.0, -ratio], scaled) for share, ratio in terms))[::-1]

    return back


def _transforms(kernel: PositionalKernel, tokens: int) -> Callable[[Row], Row]:
    r"""\(\omega^\top v\) by convolution with \(b(m/N)\), m >= 1; rounding below 0 is cut off."""
    from scipy.signal import fftconvolve

    weights = np.concatenate([[0.0], kernel.weight(np.arange(1, tokens) / tokens)])
    norms = np.cumsum(weights)

    def back(row: Row) -> Row:
        scaled = np.divide(row, norms, out=np.zeros(tokens), where=norms > 0)[::-1]
        return np.asarray(np.maximum(fftconvolve(weights, scaled)[:tokens], 0.0))[::-1]

    return back
