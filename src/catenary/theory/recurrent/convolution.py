r"""The gated short convolution of LFM2 at birth: exact products of covariances."""

from __future__ import annotations

from dataclasses import dataclass

from catenary.architecture import ShortConvolution
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs, constant
from catenary.theory.recurrent.taps import Taps


@dataclass(frozen=True, eq=False)
class ConvolutionMixer:
    r"""\(W_{out}(c\cdot conv(b\cdot x))\) over inputs of covariance X.

    b, c and x have the covariance \(s^2X\), \(s^2 = d\sigma_{in}^2\), and are independent, the taps have the variance
    \(\sigma_w^2\), m channels and \(\sigma\) the std of the output matrix give the gain \(g = m\sigma^2\). So outputs
    have the covariance \(g\,s^2X\circ P\), \(P = \sigma_w^2s^4\,T(X\circ X)\), and a gradient of covariance D becomes

    \[g\,s^2\,[D\circ P + 2\,\sigma_w^2s^4\,X\circ T^*(D\circ X)].\]

    Exact for any distribution of independent weights. Derived here: ``docs/recurrent.md``.
    """

    convolution: ShortConvolution
    width: int
    taps: Taps

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x``."""
        word = self.convolution
        step = self.width * word.input_std**2
        inside = self.taps.earlier(x * x).times(constant(word.tap_std**2 * step**2))
        gain = word.width * word.output_std**2 * step
        return Outcome((x * inside).times(constant(gain)), PassedConvolution(self, x, inside, gain))


@dataclass(frozen=True, eq=False)
class PassedConvolution:
    """The forward pass: ``inside`` is P, the covariance of the convolution's outputs."""

    mixer: ConvolutionMixer
    x: Pairs
    inside: Pairs
    gain: float

    def backward(self, gradient: Pairs) -> Pairs:
        """Through c, and through b and x alike."""
        word = self.mixer.convolution
        strength = 2 * word.tap_std**2 * (self.mixer.width * word.input_std**2) ** 2
        inner = self.mixer.taps.later(gradient * self.x).times(self.x).times(constant(strength))
        return inner.plus(gradient * self.inside).times(constant(self.gain))
