"""`kinetic correlate`: correlations sampled from the particles, beside the closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catenary.kinetic.closed_form.retrieval import retrieval_profile
from catenary.kinetic.correlations.estimators import EstimatorName, correlate
from catenary.kinetic.correlations.result import Correlations
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.readout import gaussian_readout
from catenary.page import kinetic_charts as charts
from catenary.page.kinetic import Exhibit, Plate
from catenary.page.kinetic_charts import POSITIONS

Progress = Callable[[int, int], None]


def correlate_exhibit(
    *, tokens: int, lam: float, beta: float, t: float, M: float, samples: int, estimator: EstimatorName, bins: int,
    seed: int, progress: Progress,
) -> Exhibit:
    """Correlations sampled from the particles, beside the closed form."""
    system, readout = Circle(tokens, beta, lam), gaussian_readout(M)
    costly = estimator in ("pair", "conditional")
    sources = None if not costly else np.unique(np.ceil((np.arange(bins) + 0.5) / bins * (tokens - 1))) / tokens
    parts = max(1, min(10, samples // 200))
    sizes = [samples * (k + 1) // parts - samples * k // parts for k in range(parts)]
    seeds = np.random.SeedSequence(seed).generate_state(parts).tolist()
    draws = []
    for k, (size, own) in enumerate(zip(sizes, seeds, strict=True)):
        part = correlate(system, t=t, readout=readout, samples=size, seed=own, sigma0=sources, estimator=estimator)
        draws.append(part.draws)
        progress(k + 1, parts)
    found = Correlations(part.estimator, part.sigma0, np.concatenate(draws), part.runs_per_sample, seed)
    exact = np.asarray(retrieval_profile(found.sigma0, lam=lam, beta=beta, t=t, M=M))
    if not costly:
        width = max(1, (tokens - 1) // bins)
        found = found.binned(width)
        exact = exact[: found.sigma0.size * width].reshape(-1, width).mean(axis=1)
    offset = (found.value - exact) / found.stderr
    away = float(np.sqrt(np.mean(offset**2)))
    relative = float(np.median(found.stderr / np.abs(exact)))
    verdict = (
        f"{samples:,} samples of {tokens:,} tokens give the correlations to {100 * relative:.2g} % (median); they lie "
        f"{away:.1f} standard errors (root mean square) from the limit of many tokens"
    )
    plate = Plate(
        "correlate", charts.estimates(found, POSITIONS[POSITIONS > 0.02], np.asarray(
            retrieval_profile(POSITIONS[POSITIONS > 0.02], lam=lam, beta=beta, t=t, M=M))),
        f"Estimates and closed form. {verdict}",
        "Points: sampled, with bars of two standard errors" + ("" if costly else ", averaged over neighbouring sources")
        + ". Line: the closed form. Their difference beyond the bars is of order 1/N.",
    )  # fmt: skip
    values = list(zip(found.sigma0.tolist(), found.value.tolist(), found.stderr.tolist(), exact.tolist(), strict=True))
    return Exhibit(
        name="correlate", kicker="Kinetic theory", title="Correlations of the last token with every source",
        verdict=verdict, notes=(),
        numbers=(("lambda", f"{lam:g}"), ("beta", f"{beta:g}"), ("time", f"{t:g}"), ("token angles M", f"{M:g}"),
                 ("estimator", estimator), ("forward runs", f"{found.runs_per_sample * samples:,.0f}")),
        plates=(plate,), caption="N times the correlation",
        columns=("source", "estimate", "standard error", "closed form", "in standard errors"),
        rows=tuple((f"{s:.4f}", f"{v:.4f}", f"{e:.4f}", f"{x:.4f}", f"{(v - x) / e:+.1f}") for s, v, e, x in values),
        fields=("sigma0", "estimate", "stderr", "closed_form"), data=values,
        parameters={"tokens": tokens, "lam": lam, "beta": beta, "t": t, "M": M, "samples": samples,
                    "estimator": estimator, "bins": bins, "seed": seed},
        results={"rms_offset": away, "median_relative_stderr": relative, "runs": found.runs_per_sample * samples},
    )  # fmt: skip
