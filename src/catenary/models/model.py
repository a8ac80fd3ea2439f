"""Model: a real network and everything needed to make it again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from catenary.architecture import Architecture
from catenary.errors import MissingResource
from catenary.models.alive import check_alive
from catenary.models.anatomy import Anatomy, dissect, embed_some
from catenary.models.elsewhere import device_of, values_of
from catenary.models.extra import torch, transformers
from catenary.models.passing import check_passing

Weights = Literal["untrained", "pretrained", "given"]
"""``given``: the user's own module, of which nothing is known."""


@dataclass(frozen=True, eq=False)
class Model:
    """A causal decoder of transformers with what is known about it.

    Attributes:
        module: the network. ``load`` gives it frozen, in eval mode; a user's own is never changed.
        anatomy: its embedding, backbone, layers and final norm.
        name: what it was asked for by.
        config: its ``config.json`` as plain JSON values.
        weights: ``untrained``, ``pretrained`` or ``given``.
        seed: the seed of an untrained network's weights, else None.
        initialisation: what initialisation was used, in words; empty unless untrained.
        rope: False when rotary position coding was switched off.
        architecture: the description theory uses, None where the family is not described yet.
        folder: where the files lie, None for a config alone.
        revision: the hub revision that was resolved, else None.
        trust_remote_code: whether code that came with the model may run.
        vocabulary: the reduced number of embedding rows, None if as configured.
        notes: what else a reader must know, one line each.
    """

    module: torch.nn.Module
    anatomy: Anatomy
    name: str
    config: Mapping[str, Any]
    weights: Weights = "given"
    seed: int | None = None
    initialisation: str = ""
    rope: bool = True
    architecture: Architecture | None = None
    folder: Path | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    vocabulary: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def embedding_weight(self) -> torch.Tensor:
        """The embedding matrix, (vocabulary, width)."""
        weight = self.anatomy.embedding.weight
        assert isinstance(weight, torch.Tensor)
        return weight

    @property
    def device(self) -> torch.device:
        """Where the input enters."""
        return device_of(self.anatomy.embedding)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the embedded tokens."""
        return self.embedding_weight.dtype

    @property
    def attention(self) -> str:
        """The attention implementation in use: ``sdpa``, ``eager``, ..."""
        return str(getattr(self.module.config, "_attn_implementation", "unknown"))

    @cached_property
    def width(self) -> int:
        """Size d of the vectors that enter the first layer."""
        return int(embed_some(self.anatomy.embedding, 1).shape[-1])

    @property
    def max_length(self) -> int | None:
        """The longest sequence the config names, None if it names none."""
        for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
            value = getattr(self.module.config, name, None)
            if isinstance(value, int) and value > 0:
                return value
        return None

    @cached_property
    def embedding_std(self) -> float:
        """Std of one entry of an embedded token, as it leaves the embedding module.

        The nominal one of the initialisation for an untrained network of a described family, so that it equals
        what theory uses; else the std over up to 4,096 embedded tokens.
        """
        if self.weights == "untrained" and self.architecture is not None:
            return self.architecture.embedding.std
        return float(embed_some(self.anatomy.embedding, 4096).double().cpu().std())

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the names, types, shapes and bytes of all parameters, in order of name."""
        digest = hashlib.sha256()
        for name, parameter in sorted(self.module.named_parameters()):
            digest.update(f"{name} {parameter.dtype} {tuple(parameter.shape)}\n".encode())
            for values in values_of(self.module, name, parameter):
                data = values.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
                digest.update(data.data)
        return digest.hexdigest()

    @cached_property
    def _tokenizer(self) -> Any:
        source = self.folder if self.folder is not None else self.name
        try:
            return transformers().AutoTokenizer.from_pretrained(
                source, revision=self.revision, trust_remote_code=self.trust_remote_code
            )
        except (OSError, ValueError) as error:
            raise MissingResource(f"no tokenizer for {self.name!r}: looked in {source}") from error

    def tokenizer(self) -> Any:
        """The model's tokenizer, read at the first call.

        Raises:
            MissingResource: when the model came without one.
        """
        return self._tokenizer

    @property
    def label(self) -> str:
        """The words a legend shows."""
        kind = "" if self.weights == "given" else f" {self.weights}"
        return f"{self.name}{kind}" + ("" if self.rope else ", no RoPE")

    def provenance(self) -> dict[str, Any]:
        """What is needed to make this network again, as plain JSON values."""
        return {
            "name": self.name,
            "class": type(self.module).__name__,
            "config": dict(self.config),
            "weights": self.weights,
            "seed": self.seed,
            "initialisation": self.initialisation,
            "rope": self.rope,
            "revision": self.revision,
            "trust_remote_code": self.trust_remote_code,
            "vocabulary": self.vocabulary,
            "device": self.device.type,
            "dtype": str(self.dtype).removeprefix("torch."),
            "attention": self.attention,
            "fingerprint": self.fingerprint,
            "notes": list(self.notes),
            "torch": torch.__version__,
            "transformers": transformers().__version__,
        }

    def __repr__(self) -> str:
        """One line: label, class, device, dtype, attention."""
        return (
            f"Model({self.label!r}, {type(self.module).__name__}, {self.device}, "
            f"{str(self.dtype).removeprefix('torch.')}, {self.attention})"
        )


def adopt(
    module: torch.nn.Module, *, weights: Weights = "given", name: str | None = None, seed: int | None = None
) -> Model:
    """Describe a network the user holds, on whatever devices and in whatever type it is, without changing it.

    Say ``weights="untrained"`` to feed it Gaussian vectors, which mean nothing to trained weights.

    Raises:
        InvalidInput, NotApplicable: as ``check_alive``, ``check_passing`` and ``dissect``.
    """
    config = getattr(module, "config", None)
    as_dict = config.to_dict() if config is not None and hasattr(config, "to_dict") else {}
    anatomy = dissect(module)
    notes = check_alive(module, anatomy)
    check_passing(module, anatomy)
    return Model(module, anatomy, name or type(module).__name__, as_dict, weights, seed, notes=notes)
