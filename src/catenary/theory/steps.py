"""Residual steps as the recursion passes through them, forward with covariances and backward with gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.architecture import Norm
from catenary.theory.mixers import Mixer, Passed
from catenary.theory.positions.pairs import Pairs, Vector


@dataclass(frozen=True, eq=False)
class Part:
    """One branch of a step: its mixer between its norms, and the square of its scale."""

    mixer: Mixer
    before: Norm | None
    after: Norm | None
    energy: float


@dataclass(frozen=True, eq=False)
class Move:
    """One residual step: y = before(x), x <- after(keep y + sum of parts); ``kept`` is the square of keep."""

    parts: tuple[Part, ...]
    kept: float
    before: Norm | None
    after: Norm | None

    def forward(self, x: Pairs) -> Moved:
        """The pass over a stream of covariance ``x``, which stays whole."""
        entry = None if self.before is None else unit_scale(x, self.before)
        y = x if entry is None else x.scaled(entry)
        total: Pairs | None = None
        passed, shares = [], []
        inputs: dict[Norm | None, tuple[Vector | None, Pairs]] = {None: (None, y)}
        for part in self.parts:
            if part.before is not None and part.before not in inputs:
                scale = unit_scale(y, part.before)
                inputs[part.before] = (scale, y.scaled(scale))
            into, seen = inputs[part.before]
            outcome = part.mixer.forward(seen)
            added, out = outcome.added, None
            if part.after is not None:
                out = part.energy**0.5 * unit_scale(added, part.after)
                added = added.scaled(out)
            elif part.energy != 1:
                added = added.scaled(np.full(1, part.energy**0.5))
            shares.append(added.same)
            total = added if total is None else total.plus(added)
            passed.append(PassedPart(outcome.passed, into, out, part.energy))
        kept = y if self.kept == 1 else y.scaled(np.full(1, self.kept**0.5))
        stream = kept if total is None else total.plus(kept)
        leave = None if self.after is None else unit_scale(stream, self.after)
        stream = stream if leave is None else stream.scaled(leave)
        return Moved(stream, PassedMove(tuple(passed), self.kept, entry, leave), kept.same, tuple(shares))


@dataclass(frozen=True, eq=False)
class PassedPart:
    """The forward pass of one branch: its mixer's, and the factors of the norms around it."""

    mixer: Passed
    into: Vector | None
    out: Vector | None
    energy: float

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the gradients at the branch's input."""
        if self.out is not None:
            gradient = gradient.scaled(self.out)
        elif self.energy != 1:
            gradient = gradient.scaled(np.full(1, self.energy**0.5))
        through = self.mixer.backward(gradient)
        return through if self.into is None else through.scaled(self.into)


@dataclass(frozen=True, eq=False)
class PassedMove:
    """The forward pass of one step."""

    parts: tuple[PassedPart, ...]
    kept: float
    entry: Vector | None
    leave: Vector | None

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the gradients in front of the step, from that behind it."""
        if self.leave is not None:
            gradient = gradient.scaled(self.leave)
        total = gradient if self.kept == 1 else gradient.scaled(np.full(1, self.kept**0.5))
        for part in self.parts:
            total = part.backward(gradient).plus(total)
        return total if self.entry is None else total.scaled(self.entry)


@dataclass(frozen=True, eq=False)
class Moved:
    """One step's forward pass: the stream behind it, what its backward pass needs, and who added how much.

    ``kept`` is the second moment of what stays of the stream, ``added`` that of each part, in front of ``after``.
    """

    stream: Pairs
    passed: PassedMove
    kept: Vector
    added: tuple[Vector, ...]


def unit_scale(x: Pairs, norm: Norm) -> Vector:
    r"""\(1/\sqrt{X_{ii}+\epsilon}\), the factor by which a norm multiplies each token at large width."""
    return np.asarray(1 / np.sqrt(x.same + norm.epsilon))
