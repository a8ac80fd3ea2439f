r"""The particle system's force and its transposed derivative as causal scans, O(N K) for K angular modes.

With \(S_{n,j} = \sum_{k<j} \rho^{j-1-k} e^{-in\theta_k}\) the force on token j needs only
\(\mathrm{Im}(e^{in\theta_j} S_{n,j})\), and \(S_{n,j+1} = \rho S_{n,j} + e^{-in\theta_j}\). Powers of
\(e^{i\theta}\) come by repeated multiplication. These functions are compiled before use (catenary.compiled) and know
numpy arrays only: angles (copy, token), decays and shares (exponential), inverse normalisers (token), modes (mode).
"""

from typing import no_type_check

import numpy as np


@no_type_check
def drift_loop(angles, decays, shares, inverse, strengths, out):
    r"""out = F; strengths are \(2 n I_n(\beta)\)."""
    copies, tokens = angles.shape
    modes, terms = len(strengths), len(decays)
    cosines = np.empty(modes)
    sines = np.empty(modes)
    for copy in range(copies):
        real = np.zeros((terms, modes))  # S = real - i imaginary
        imaginary = np.zeros((terms, modes))
        for j in range(tokens):
            c = c1 = np.cos(angles[copy, j])
            s = s1 = np.sin(angles[copy, j])
            for n in range(modes):
                cosines[n] = c
                sines[n] = s
                c, s = c * c1 - s * s1, s * c1 + c * s1
            total = 0.0
            for p in range(terms):
                part = 0.0
                for n in range(modes):
                    part += strengths[n] * (cosines[n] * imaginary[p, n] - sines[n] * real[p, n])
                    real[p, n] = decays[p] * real[p, n] + cosines[n]
                    imaginary[p, n] = decays[p] * imaginary[p, n] + sines[n]
                total += shares[p] * part
            out[copy, j] = total * inverse[j]


@no_type_check
def pull_back_loop(angles, cotangents, decays, shares, inverse, rates, out):
    r"""out = \(J^\top p\); rates are \(2 n^2 I_n(\beta)\). One scan forward for the diagonal, one back for the rest."""
    copies, tokens = angles.shape
    modes, terms = len(rates), len(decays)
    cosines = np.empty((tokens, modes))
    sines = np.empty((tokens, modes))
    for copy in range(copies):
        real = np.zeros((terms, modes))
        imaginary = np.zeros((terms, modes))
        for j in range(tokens):
            c = c1 = np.cos(angles[copy, j])
            s = s1 = np.sin(angles[copy, j])
            for n in range(modes):
                cosines[j, n] = c
                sines[j, n] = s
                c, s = c * c1 - s * s1, s * c1 + c * s1
            total = 0.0
            for p in range(terms):
                part = 0.0
                for n in range(modes):
                    part += rates[n] * (cosines[j, n] * real[p, n] + sines[j, n] * imaginary[p, n])
                    real[p, n] = decays[p] * real[p, n] + cosines[j, n]
                    imaginary[p, n] = decays[p] * imaginary[p, n] + sines[j, n]
                total += shares[p] * part
            out[copy, j] = -total * inverse[j] * cotangents[copy, j]
        real[:] = 0.0
        imaginary[:] = 0.0
        for j in range(tokens - 1, -1, -1):
            sent = cotangents[copy, j] * inverse[j]
            total = 0.0
            for p in range(terms):
                part = 0.0
                for n in range(modes):
                    part += rates[n] * (cosines[j, n] * real[p, n] + sines[j, n] * imaginary[p, n])
                    real[p, n] = decays[p] * real[p, n] + sent * cosines[j, n]
                    imaginary[p, n] = decays[p] * imaginary[p, n] + sent * sines[j, n]
                total += shares[p] * part
            out[copy, j] += total
