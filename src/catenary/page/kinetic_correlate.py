"""`kinetic correlate`: correlations sampled from the particles, beside the closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import one_number, positive
from catenary.kinetic.closed_form.retrieval import retrieval_mass, retrieval_profile
from catenary.kinetic.correlations.estimators import EstimatorName, correlate
from catenary.kinetic.correlations.result import Correlations
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.integrate import FEWEST, stiffness
from catenary.kinetic.particles.readout import gaussian_readout
from catenary.page import kinetic_charts as charts
from catenary.page.exhibit import Exhibit, Plate
from catenary.page.kinetic_charts import POSITIONS
from catenary.page.kinetic_simulate import Progress, check_size

FEW = 0.1
"""Mean of the closed form over the number of tokens above which N counts as too small for it."""

MOST_WORK = 1e9
"""Tokens of all samples times steps above which a run would take more than some ten minutes (measured on one core)."""

MOST_HELD = 20_000_000
"""Draws, one per sample and source, held before they are averaged."""


def correlate_exhibit(
    *, tokens: int, lam: float, beta: float, t: float, M: float, samples: int, estimator: EstimatorName, bins: int,
    seed: int, progress: Progress, say: Callable[[str], None],
) -> Exhibit:
    """Correlations sampled from the particles, beside the closed form; where N is too small for it, said first."""
    system, readout, time = Circle(tokens, beta, lam), gaussian_readout(M), one_number("time", positive("time", t))
    costly = estimator in ("pair", "conditional")
    runs = samples * (bins if costly else 1)
    check_size(tokens * runs, max(FEWEST, stiffness(beta) * time), MOST_WORK, "samples, tokens, beta or time")
    sources = None if not costly else np.unique(np.ceil((np.arange(bins) + 0.5) / bins * (tokens - 1))) / tokens
    weight = float(retrieval_mass(beta=beta, t=t, M=M)) / tokens
    few = (
        f"{tokens:,} tokens are too few for the closed form at this time: its mean over the sources is {weight:.2g} N, "
        "and should be far below N"
    )
    if weight > FEW:
        say(few)
    parts = max(1, min(10, samples // 200), min(samples // 50, tokens * samples // MOST_HELD))
    sizes = [samples * (k + 1) // parts - samples * k // parts for k in range(parts)]
    seeds = np.random.SeedSequence(seed).generate_state(parts).tolist()
    draws = []
    for k, (size, own) in enumerate(zip(sizes, seeds, strict=True)):
        part = correlate(system, t=t, readout=readout, samples=size, seed=own, sigma0=sources, estimator=estimator)
        groups = np.array_split(np.arange(part.sigma0.size), min(bins, part.sigma0.size))
        starts = np.array([group[0] for group in groups])
        draws.append(binned(part.draws, starts))
        progress(k + 1, parts)
    averaged = starts.size < part.sigma0.size
    at = binned(part.sigma0[None], starts)[0]
    found = Correlations(part.estimator, at, np.concatenate(draws), part.runs_per_sample, seed)
    exact = binned(np.asarray(retrieval_profile(part.sigma0, lam=lam, beta=beta, t=t, M=M))[None], starts)[0]
    known = found.stderr > 0
    if not known.any():
        raise NotApplicable("every estimate rounds to 0 in float64: take a smaller lam")
    away = float(np.sqrt(np.mean(((found.value - exact)[known] / found.stderr[known]) ** 2)))
    relative = float(np.median(found.stderr[known] / np.abs(found.value[known])))
    gap = float(np.median(np.abs(found.value - exact)[known] / np.abs(found.value[known])))
    verdict = f"{samples:,} samples of {tokens:,} tokens give the correlations to {100 * relative:.2g} % (median); "
    if weight > FEW:
        verdict += few
    else:
        verdict += (
            f"the limit of many tokens lies {100 * gap:.2g} % away (median), {away:.1f} standard errors (root mean "
            "square)"
        )
    notes = ("The closed form is the limit of many tokens: what differs beyond the standard errors is of order 1/N.",)
    drawn = POSITIONS[POSITIONS > 0.02]
    line = np.asarray(retrieval_profile(drawn, lam=lam, beta=beta, t=t, M=M))
    plate = Plate(
        "correlate", charts.estimates(found, drawn, line, exact), f"Estimates and closed form. {verdict}",
        "Points: sampled, with bars of two standard errors"
        + (", averaged over neighbouring sources" if averaged else "") + ". Line: the closed form; rings: the same"
        + (", averaged as the points" if averaged else " at the points")
        + ". Their difference beyond the bars is of order 1/N.",
    )  # fmt: skip
    values = list(zip(found.sigma0.tolist(), found.value.tolist(), found.stderr.tolist(), exact.tolist(), strict=True))
    return Exhibit(
        name="correlate", kicker="Kinetic theory", title="Correlations of the last token with every source",
        verdict=verdict, notes=notes,
        numbers=(("lambda", f"{lam:g}"), ("beta", f"{beta:g}"), ("time", f"{t:g}"), ("token angles M", f"{M:g}"),
                 ("estimator", estimator), ("forward runs", f"{found.runs_per_sample * samples:,.0f}")),
        plates=(plate,), caption="N times the correlation",
        columns=("source", "estimate", "standard error", "closed form", "in standard errors"),
        rows=tuple(
            (f"{s:.4f}", *(f"{cell:.4g}" for cell in (v, e, x)), f"{(v - x) / e:+.1f}" if e else "none")
            for s, v, e, x in values
        ),
        fields=("sigma0", "estimate", "stderr", "closed_form"), data=values,
        parameters={"tokens": tokens, "lam": lam, "beta": beta, "t": t, "M": M, "samples": samples,
                    "estimator": estimator, "bins": bins, "seed": seed},
        results={"rms_offset": away, "median_relative_stderr": relative, "median_gap": gap, "mass_over_tokens": weight,
                 "runs": found.runs_per_sample * samples},
    )  # fmt: skip


def binned(
    draws: Float64[np.ndarray, "samples sources"], starts: Int64[np.ndarray, " bins"]
) -> Float64[np.ndarray, "samples bins"]:
    """Averages over neighbouring sources, from each start up to the next."""
    return np.asarray(np.add.reduceat(draws, starts, axis=1) / np.diff(starts, append=draws.shape[1]))
