"""Pupil: a fresh decoder that reads a task's tokens as sums of two table rows, and answers at the last position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Int64

from catenary.study.tasks import VALUES, Batch, key_rows
from catenary.study.units import derived_seed

if TYPE_CHECKING:
    from catenary.models.extra import torch
    from catenary.models.model import Model

Descent = Literal["adam", "sgd"]
MOMENTUM, CLIP = 0.9, 1.0
"""Of ``sgd``: without the second, a rate at which it learns in hundreds of updates diverges in the first ones."""


class Pupil:
    """The network, both tables and the readout. Rows are N(0, std^2/2): a token has the embedding's std."""

    def __init__(self, model: Model, length: int, seed: int, rate: float, descent: Descent = "adam") -> None:
        """Draw tables and readout; the model's own weights are what will change.

        ``descent``: Adam, or gradient descent with momentum 0.9 whose gradient is clipped at norm 1.
        """
        from catenary.models.extra import torch

        generator = torch.Generator().manual_seed(derived_seed(seed, "tables"))

        def drawn(rows: int, std: float) -> torch.nn.Parameter:
            return torch.nn.Parameter((std * torch.randn(rows, model.width, generator=generator)).to(model.device))

        self.model = model
        half = model.embedding_std / 2**0.5
        self._keys, self._values = drawn(key_rows(length), half), drawn(VALUES + 1, half)
        self._readout = drawn(VALUES, model.width**-0.5)
        self.weights = [*model.module.parameters(), self._keys, self._values, self._readout]
        for parameter in self.weights:
            parameter.requires_grad_(True)
        self._rate, self._descent = rate, descent
        self.restart()

    def restart(self) -> None:
        """Forget momentum and sizes of past gradients, not what was learned."""
        from catenary.models.extra import torch

        self._optimiser: torch.optim.Optimizer
        if self._descent == "adam":
            self._optimiser = torch.optim.Adam(self.weights, lr=self._rate)
        else:
            self._optimiser = torch.optim.SGD(self.weights, lr=self._rate, momentum=MOMENTUM)

    def vectors(self, batch: Batch) -> torch.Tensor:
        """What is fed for each token, (b, L, d)."""
        keys, values = self._tensor(batch.keys), self._tensor(batch.values)
        return self._keys[keys] + self._values[values]

    def logits(self, batch: Batch) -> torch.Tensor:
        """Of every value, at the last position, (b, ``VALUES``)."""
        from catenary.models.extra import torch
        from catenary.models.stream import run

        mask = torch.ones(batch.keys.shape, dtype=torch.long, device=self.model.device)
        return run(self.model.anatomy.backbone, self.vectors(batch), mask)[:, -1] @ self._readout.T

    def loss(self, batch: Batch) -> torch.Tensor:
        """Cross-entropy of the answers."""
        from catenary.models.extra import torch

        return torch.nn.functional.cross_entropy(self.logits(batch), self._tensor(batch.answers))

    def right(self, batch: Batch) -> Bool[np.ndarray, " b"]:
        """Which answers are right; nothing is learned."""
        from catenary.models.extra import torch

        with torch.no_grad():
            return np.asarray(self.logits(batch).argmax(dim=1).cpu().numpy() == batch.answers)

    def update(self, batch: Batch) -> Bool[np.ndarray, " b"]:
        """Which answers were right, before one update on the cross-entropy of the answers."""
        from catenary.models.extra import torch

        logits, answers = self.logits(batch), self._tensor(batch.answers)
        loss = torch.nn.functional.cross_entropy(logits, answers)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        if self._descent == "sgd":
            torch.nn.utils.clip_grad_norm_(self.weights, CLIP)
        self._optimiser.step()
        return np.asarray((logits.argmax(dim=1) == answers).cpu().numpy())

    def _tensor(self, rows: Int64[np.ndarray, ...]) -> torch.Tensor:
        from catenary.models.extra import torch

        return torch.from_numpy(rows).to(self.model.device)
