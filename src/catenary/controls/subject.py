"""Subject: the network under test, what it reads, and what several controls measure on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from catenary.architecture import Architecture
from catenary.blocks import Blocks
from catenary.configs.read import read_config
from catenary.controls.state import State, state_of
from catenary.errors import InvalidInput
from catenary.measure.jacobian import measure_jacobian
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.twin import twin
from catenary.text.documents import Documents
from catenary.text.tokenise import Bos
from catenary.text.windows import Windows
from catenary.verdict import BOUND

FEW = 2
"""Windows for what must agree to rounding: their number decides nothing there."""

Norms = Float64[np.ndarray, "n L"]


@dataclass(frozen=True, eq=False)
class Subject:
    """What controls look at.

    Attributes:
        model: the network; no control changes it.
        windows: what it reads, at least two windows.
        seed: of probes and of the networks drawn beside it.
        probes: cotangents per window.
        tokenizer: None where there is none, and ``no_tokenizer`` says why.
        documents: what windows with and without BOS are cut from; with a tokenizer only.
        bos: the policy of ``windows``.
    """

    model: Model
    windows: Windows
    seed: int = 0
    probes: int = 1
    tokenizer: Any = None
    no_tokenizer: str = "no tokenizer"
    documents: Documents | None = None
    bos: Bos = "tokenizer"

    @cached_property
    def before(self) -> State:
        """The network as it was handed over; the first thing that is looked at."""
        return state_of(self.model.module)

    @cached_property
    def exact(self) -> Model:
        """The network in float32, for what must agree to rounding: itself, or a twin of a coarser one."""
        fine = self.model.dtype in (torch.float32, torch.float64)
        return self.model if fine else twin(self.model, dtype=torch.float32)

    @cached_property
    def architecture(self) -> Architecture:
        """What its config says; raises ``InvalidInput`` where it is not described."""
        return self.model.architecture or read_config(dict(self.model.config))

    @cached_property
    def norms(self) -> Norms:
        """Of the network itself, on all windows."""
        return self.profile(self.model)

    def profile(
        self,
        model: Model,
        windows: Windows | None = None,
        *,
        sequences: range | None = None,
        attention_mask: Int[np.ndarray, "n T"] | None = None,
        source_layer: int | None = None,
        target_layer: int | None = None,
    ) -> Norms:
        """Root mean square over probes of ||J_j^T v||, a row per window."""
        sample = measure_jacobian(
            model, windows or self.windows, probes=self.probes, seed=self.seed, sequences=sequences,
            attention_mask=attention_mask, source_layer=source_layer, target_layer=target_layer,
        )  # fmt: skip
        return np.asarray(np.sqrt(sample.energy[0, 0, 0].mean(axis=1)))

    @cached_property
    def exact_norms(self) -> Norms:
        """Of the network in float32, on the first ``FEW`` windows."""
        return self.norms[:FEW] if self.exact is self.model else self.few(self.exact)

    def few(self, model: Model) -> Norms:
        """The profile on the first ``FEW`` windows."""
        return self.profile(model, sequences=range(min(FEW, len(self.windows))))

    def first_windows(self, count: int = FEW) -> Windows:
        """The first windows alone."""
        return replace(self.windows, ids=self.windows.ids[:count], sources=self.windows.sources[:count])


@dataclass(frozen=True)
class Shift:
    """How far one profile lies from another on the same windows; all in dex.

    Attributes:
        median: over blocks, of |mean over windows of the change of the block's log-mean|.
        largest: of the same.
        error: median over blocks of the standard error of that change over windows.
        noise: median over blocks of the standard error of the block's log-mean itself over windows.
    """

    median: float
    largest: float
    error: float
    noise: float

    @property
    def seen(self) -> bool:
        """Whether the change counts: above the bound of a shape, and above twice its own standard error."""
        return self.median > max(BOUND, 2 * self.error)

    @property
    def numbers(self) -> Mapping[str, float]:
        """Under the names that a check stores."""
        return {
            "median_dex": self.median, "largest_dex": self.largest, "error_dex": self.error, "noise_dex": self.noise,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """``0.12 dex (+- 0.02; median over blocks, largest 0.3); noise between windows 0.05 dex``."""
        return (
            f"{self.median:.2g} dex (+- {self.error:.1g}; median over blocks, largest {self.largest:.2g}); "
            f"noise between windows {self.noise:.2g} dex"
        )


def shift(before: Norms, after: Norms) -> Shift:
    """The shift from one profile to another, over the blocks of the body.

    Raises:
        InvalidInput: fewer than 5 positions, or fewer than two windows, which show no noise.
    """
    if len(before) < 2:
        raise InvalidInput(f"windows must be at least 2 to show the noise between them, got {len(before)}")
    blocks = Blocks(before.shape[1])
    low, high = blocks.log_means(before), blocks.log_means(after)
    change = np.abs((high - low).mean(axis=0))
    error, noise = (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) for rows in (high - low, low))
    return Shift(float(np.median(change)), float(change.max()), float(np.median(error)), float(np.median(noise)))


def apart(seen: Norms, expected: Norms) -> float:
    """Largest difference of norms over windows and positions, relative to the largest norm of the window."""
    return float((np.abs(seen - expected) / expected.max(axis=1, keepdims=True)).max())
