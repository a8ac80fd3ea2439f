r"""One call for N times the correlations, by any of the estimators."""

from __future__ import annotations

from typing import Literal

from catenary.errors import unknown
from catenary.kinetic.arguments import Numbers, generator, instance, one_number, positive, whole
from catenary.kinetic.correlations.by_adjoint import Adjoint, AdjointControl
from catenary.kinetic.correlations.plain import Conditional, GlauberPair, Naive
from catenary.kinetic.correlations.result import Correlations, Estimator, Question, source_tokens
from catenary.kinetic.particles.readout import Readout
from catenary.kinetic.particles.system import System

ESTIMATORS: dict[str, Estimator] = {
    "naive": Naive(),
    "pair": GlauberPair(),
    "conditional": Conditional(),
    "adjoint": Adjoint(),
    "adjoint-control": AdjointControl(),
}
"""The estimators by name."""

EstimatorName = Literal["naive", "pair", "conditional", "adjoint", "adjoint-control"]


def correlate(
    system: System,
    *,
    t: float,
    readout: Readout,
    samples: int,
    seed: int,
    sigma0: Numbers | None = None,
    estimator: EstimatorName | Estimator = "adjoint-control",
    steps: int | None = None,
) -> Correlations:
    r"""\(N\,\mathrm{E}\,\kappa(\theta_N(t) - \theta_i(0))\) for tokens that start independent and uniform.

    It tends to \(\sum_n \omega_n g_{a_n}(t, 1; i/N)\), the retrieval profile for ``gaussian_readout(M)``, with an
    error of order 1/N that grows fast with beta and t: at lambda = beta = t = 1 about -1/N to -2.5/N of the value, at
    lambda = beta = 2, t = 0.4 about -8/N to -15/N (docs/kinetic-particles.md). Below that error more samples tell
    nothing about the limit.

    Args:
        system: ``Circle`` or ``PositionalCircle``.
        t: time > 0.
        readout: the kernel, see ``gaussian_readout``.
        samples: number of independent prompts >= 2; every draw is kept, 8 bytes per sample and source.
        seed: seed of the prompts.
        sigma0: positions of the sources in (0, 1), token \(\lceil N\sigma_0 \rceil\) each; all tokens but the last if
            not given. "pair" and "conditional" cost runs for each source, the others do not.
        estimator: "naive", "pair", "conditional", "adjoint" or "adjoint-control", or an ``Estimator``, such as
            ``Conditional(points=12)``.
        steps: time steps of a run, see ``flow``.

    Raises:
        InvalidInput: an argument is out of range, the step is unstable, or ``Conditional`` has too few points.

    >>> from catenary.kinetic.particles.circle import Circle
    >>> from catenary.kinetic.particles.readout import gaussian_readout
    >>> found = correlate(Circle(32, 1.0, 1.0), t=1.0, readout=gaussian_readout(8), samples=200, seed=0)
    >>> found.sigma0.shape, found.runs_per_sample
    ((31,), 3.0)
    """
    whole("samples", samples, 2)
    instance("system", system, System, "Circle, PositionalCircle or another System")
    instance("readout", readout, Readout, "a Readout, such as gaussian_readout(M)")
    if isinstance(estimator, str):
        if estimator not in ESTIMATORS:
            raise unknown("estimator", estimator, ESTIMATORS)
        name, method = str(estimator), ESTIMATORS[estimator]
    else:
        instance("estimator", estimator, Estimator, "a name or an Estimator")
        name, method = type(estimator).__name__, estimator
    sources = source_tokens(sigma0, system.tokens)
    question = Question(system, one_number("t", positive("t", t)), readout, sources, steps)
    draws = method.draw(question, generator(seed), int(samples))
    return Correlations(name, (sources + 1) / system.tokens, draws, method.runs(question), seed)
