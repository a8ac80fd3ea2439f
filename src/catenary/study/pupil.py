"""Pupil: a fresh decoder that reads a task's tokens as sums of two table rows, and answers at the last position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from catenary.study.tasks import VALUES, Batch, key_rows
from catenary.study.units import derived_seed

if TYPE_CHECKING:
    from catenary.models.model import Model


class Pupil:
    """The network, both tables and the readout, under Adam. Rows are N(0, std^2/2): a token has the embedding's std."""

    def __init__(self, model: Model, length: int, seed: int, rate: float) -> None:
        """Draw tables and readout; the model's own weights are what will change."""
        from catenary.models.extra import torch

        generator = torch.Generator().manual_seed(derived_seed(seed, "tables"))

        def drawn(rows: int, std: float) -> torch.nn.Parameter:
            return torch.nn.Parameter((std * torch.randn(rows, model.width, generator=generator)).to(model.device))

        self._model = model
        half = model.embedding_std / 2**0.5
        self._keys, self._values = drawn(key_rows(length), half), drawn(VALUES + 1, half)
        self._readout = drawn(VALUES, model.width**-0.5)
        trained = [*model.module.parameters(), self._keys, self._values, self._readout]
        for parameter in trained:
            parameter.requires_grad_(True)
        self._optimiser = torch.optim.Adam(trained, lr=rate)

    def update(self, batch: Batch) -> Bool[np.ndarray, " b"]:
        """Which answers were right, before one update on the cross-entropy of the answers."""
        from catenary.models.extra import torch
        from catenary.models.stream import run

        model = self._model
        keys, values, answers = (
            torch.from_numpy(part).to(model.device) for part in (batch.keys, batch.values, batch.answers)
        )
        vectors = self._keys[keys] + self._values[values]
        mask = torch.ones(keys.shape, dtype=torch.long, device=model.device)
        logits = run(model.anatomy.backbone, vectors, mask)[:, -1] @ self._readout.T
        loss = torch.nn.functional.cross_entropy(logits, answers)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        self._optimiser.step()
        return np.asarray((logits.argmax(dim=1) == answers).cpu().numpy())
