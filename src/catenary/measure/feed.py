"""What a window is fed as: vectors, an attention mask and position ids, with padding told apart from tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.probes import token_vectors
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.padding import check_padding
from catenary.models.rope import rotary_buffers
from catenary.models.stream import first_tensor
from catenary.text.windows import Windows


@dataclass(frozen=True, eq=False)
class Feed:
    """Windows ready for one model: where the real tokens are, and how many each row has.

    ``real`` is (n, T) with T = tokens and padding; every row has the same number ``length`` of real tokens, in one
    run. Without padding T = L.
    """

    model: Model
    windows: Windows
    real: Bool[np.ndarray, "n T"]
    length: int

    @property
    def padded(self) -> bool:
        """Whether any row has padding."""
        return bool(self.real.shape[1] > self.length)

    def vectors(self, sequences: Sequence[int]) -> Float[torch.Tensor, "n T d"]:
        """The embedded tokens of some windows, detached: what the embedding module gives, or Gaussian vectors."""
        if self.windows.vectors == "gaussian":
            drawn = np.stack([self._gaussian(index) for index in sequences])
            return torch.from_numpy(drawn).to(self.model.dtype).to(self.model.device)
        ids = torch.from_numpy(self.windows.ids[list(sequences)]).to(self.model.device)
        with torch.no_grad():
            return first_tensor(self.model.anatomy.embedding(ids)).detach()

    def _gaussian(self, index: int) -> Float[np.ndarray, "T d"]:
        """One window's vectors: each distinct id its own N(0, std^2), repeated ids the same one, padding 0."""
        real = self.real[index]
        _, first, inverse = np.unique(self.windows.ids[index][real], return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))  # rank of each distinct id by first occurrence
        table = token_vectors(len(first), self.model.width, seed=self.windows.seed, sequence=index)
        vectors = np.zeros((real.size, self.model.width))
        vectors[real] = self.model.embedding_std * table[order[inverse]]
        return vectors

    def mask(self, sequences: Sequence[int]) -> Int[torch.Tensor, "n T"]:
        """Ones on real tokens."""
        return torch.from_numpy(self.real[list(sequences)].astype(np.int64)).to(self.model.device)

    def positions(self, sequences: Sequence[int]) -> Int[torch.Tensor, "n T"] | None:
        """Position ids that count real tokens from 0, None where there is no padding and the default says the same."""
        if not self.padded:
            return None
        counted = np.maximum(np.cumsum(self.real[list(sequences)], axis=1) - 1, 0)
        return torch.from_numpy(counted.astype(np.int64)).to(self.model.device)

    def columns(self, sequences: Sequence[int], position: int) -> Int64[np.ndarray, " n"]:
        """Column of the real token at ``position``, from 0, in each window."""
        return np.asarray(np.argmax(self.real[list(sequences)], axis=1) + position)

    def last(self, sequences: Sequence[int]) -> Int64[np.ndarray, " n"]:
        """Column of the last real token of each window."""
        return self.columns(sequences, self.length - 1)


def prepare(model: Model, windows: Windows, attention_mask: Int[np.ndarray, "n T"] | None = None) -> Feed:
    """Check that ``windows`` can be fed to ``model``, before anything runs.

    Raises:
        InvalidInput: ids outside the vocabulary, a window longer than the network takes, or a mask whose rows do not
            hold the same number of tokens in one run.
        NotApplicable: Gaussian vectors for a network that is not known to be untrained, or padding for one that
            sees it.
    """
    real = _real(windows, attention_mask)
    length = int(real[0].sum())
    _check_length(model, length)
    if windows.vectors == "gaussian":
        if model.weights != "untrained":
            raise NotApplicable(
                f"windows of Gaussian vectors are for untrained networks, got {model.label!r} ({model.weights}): "
                "trained weights expect their own embeddings; use document windows, or say "
                "adopt(module, weights='untrained')"
            )
    else:
        rows = int(model.embedding_weight.shape[0])
        largest = int(windows.ids.max())
        if largest >= rows:
            raise invalid("ids", f"must be < {rows}, the vocabulary of {model.name!r}", largest, "check the tokenizer")
    feed = Feed(model, windows, real, length)
    if feed.padded:
        check_padding(model.module, model.anatomy)
    return feed


def _real(windows: Windows, attention_mask: Int[np.ndarray, "n T"] | None) -> Bool[np.ndarray, "n T"]:
    if attention_mask is None:
        return np.ones(windows.ids.shape, dtype=bool)
    mask = np.asarray(attention_mask)
    if mask.shape != windows.ids.shape:
        raise invalid("attention_mask", f"must have the shape of the ids {windows.ids.shape}", f"shape {mask.shape}")
    if not np.isin(mask, (0, 1)).all():
        raise invalid("attention_mask", "must hold 0 and 1 only", mask.max())
    real = mask.astype(bool)
    counts = sorted(set(real.sum(axis=1).tolist()))
    if len(counts) > 1:
        raise invalid("attention_mask", "must leave every row the same number of tokens", counts, "cut to one length")
    if counts[0] < 2:
        raise invalid("attention_mask", "must leave at least 2 tokens per row", counts[0])
    starts = np.diff(real.astype(int), axis=1, prepend=0) == 1
    if (starts.sum(axis=1) != 1).any():
        raise invalid("attention_mask", "must leave one run of tokens per row", "a row with a gap")
    return real


def _check_length(model: Model, length: int) -> None:
    """A table of learned positions ends hard; rotary positions go on, but trained weights have not seen them."""
    longest = model.max_length
    if longest is None or length <= longest or (model.weights == "untrained" and rotary_buffers(model.module)):
        return
    raise InvalidInput(f"window length must be <= {longest}, the most positions of {model.name!r}, got {length}")
