"""One training run's checkpoint: weights, moments and losses in a safetensors file that replaces the one before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput
from catenary.store import replacing

if TYPE_CHECKING:
    from catenary.models.training import Trainer

NAME = "checkpoint.safetensors"
Losses = Float64[np.ndarray, " t"]


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoint of one training run in a folder; ``identity`` tells it from that of any other."""

    folder: Path
    identity: str

    @property
    def path(self) -> Path:
        """The file, there or not."""
        return self.folder / NAME

    def save(self, trainer: Trainer, losses: list[float]) -> None:
        """Keep the state after ``trainer.done`` updates; the file before it stays until this one is whole."""
        import torch
        from safetensors.torch import save_file

        about = {"identity": self.identity, "done": str(trainer.done)}
        tensors = trainer.state() | {"losses": torch.tensor(losses, dtype=torch.float64)}
        with replacing(self.path) as temporary:
            save_file(tensors, temporary, metadata={"about": json.dumps(about)})

    def load(self, trainer: Trainer, latest: int) -> list[float]:
        """Put the trainer where the file left off; the losses so far, none where no file of this run is usable.

        ``latest`` is the first step still to be measured: from a later one there is no way back.
        """
        from safetensors import SafetensorError, safe_open

        if not self.path.is_file():
            return []
        try:
            with safe_open(self.path, framework="pt") as file:
                about = json.loads((file.metadata() or {}).get("about", "{}"))
                if about.get("identity") != self.identity or int(about["done"]) > latest:
                    return []
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
        except (SafetensorError, ValueError) as error:
            raise InvalidInput(f"{self.path} is damaged: {error}; remove it and run the same command again") from error
        losses: list[float] = tensors.pop("losses").tolist()
        trainer.restore(tensors, int(about["done"]))
        return losses

    def remove(self) -> None:
        """Delete the file of a finished run."""
        self.path.unlink(missing_ok=True)
