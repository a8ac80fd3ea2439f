"""Pathways: the inner products of the five terms of every layer, and the shares and tables made of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

Source = Literal["embeddings", "layer"]
NAMES = ("identity", "value", "score", "feed-forward", "both")
SYMBOLS = ("I", "V", "S", "F", "F(V+S)")


@dataclass(frozen=True)
class Share:
    """One figure with its standard error over sequences (probes, if there is one sequence); None from one of each."""

    value: float
    error: float | None

    def __str__(self) -> str:
        """Three digits, and the error in the same unit."""
        return f"{self.value:.3g}" + ("" if self.error is None else f" ± {self.error:.1g}")


@dataclass(frozen=True, eq=False)
class Pathways:
    r"""How much each path through each layer carries to every position.

    For a cotangent v at the last position, term T of layer l gives the vector
    \(t_j = (J_{<l}^T T^T J_{>l}^T v)_j\) at the embeddings (``source="embeddings"``) or
    \((T^T J_{>l}^T v)_j\) at the layer's own input (``source="layer"``). Over Gaussian v the mean of
    \(\langle t_j, t'_j\rangle\) is the Frobenius product of the two Jacobians.

    Attributes:
        products: float64 (layer, sequence, probe, term, term, position); terms in the order I, V, S, F, F(V+S).
        layers: which layer each row is, from 0.
        source: where the vectors live.
        label: of the network.
        exact: whether the products are sums over all cotangents, without probe error.
        provenance: model, windows and measurement as plain JSON values.
    """

    products: Float64[np.ndarray, "layer sequence probe 5 5 position"]
    layers: tuple[int, ...]
    source: Source
    label: str
    exact: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check and freeze the array."""
        if not np.isfinite(self.products).all():
            raise invalid("products", "must be finite", "NaN or inf", "use dtype='float32'")
        self.products.setflags(write=False)

    @property
    def energy(self) -> Float64[np.ndarray, "layer sequence probe 5 position"]:
        """Squared norm of every term at every position."""
        return np.asarray(np.einsum("lspttj->lsptj", self.products))

    @property
    def total(self) -> Float64[np.ndarray, "layer sequence probe position"]:
        """Squared norm of the sum of the five, which is the whole Jacobian's."""
        return np.asarray(self.products.sum(axis=(3, 4)))

    def share(self, layer: int, term: str, *, last: bool = True) -> Share:
        """Energy of one term over the energy of the whole, both summed over positions.

        Shares of the five don't sum to 1: what is missing is twice their inner products. ``last=False`` leaves the
        last position out, whose identity term outweighs all else.
        """
        row, index = self._row(layer), _term(term)
        stop = self.products.shape[-1] if last else -1
        return _ratio(self.energy[row, :, :, index, :stop].sum(-1), self.total[row, ..., :stop].sum(-1))

    def cosine(self, layer: int, first: str, second: str) -> Share:
        """Inner product of two terms over the product of their norms, summed over positions."""
        row, a, b = self._row(layer), _term(first), _term(second)
        summed = self.products[row].sum(-1)
        scale = np.sqrt(summed[..., a, a].mean() * summed[..., b, b].mean())
        if scale == 0:
            raise invalid("cosine", "is between terms that are not zero", f"{first} and {second} of layer {layer}")
        return _ratio(summed[..., a, b], np.full(summed.shape[:2], scale))

    def score_share(self, layer: int | None = None) -> Share:
        """Energy of S over that of V and S together, in one layer or summed over all."""
        rows = slice(None) if layer is None else slice(self._row(layer), self._row(layer) + 1)
        energy = self.energy[rows].sum(axis=(0, -1))
        return _ratio(energy[..., 2], energy[..., 1] + energy[..., 2])

    def records(self) -> list[dict[str, Any]]:
        """One row per layer: the five shares, the score share, and their errors."""
        rows = []
        for layer in self.layers:
            row: dict[str, Any] = {"layer": layer}
            figures = {name: self.share(layer, name) for name in NAMES}
            figures["score_of_attention"] = self.score_share(layer)
            for name, figure in figures.items():
                row[name], row[f"{name}_error"] = figure.value, figure.error
            rows.append(row)
        return rows

    def table(self) -> str:
        """The shares as text, a line per layer."""
        head = f"{'layer':>5}" + "".join(f"{symbol:>18}" for symbol in SYMBOLS) + f"{'S/(V+S)':>18}"
        lines = [head]
        for layer in self.layers:
            cells = [self.share(layer, name) for name in NAMES] + [self.score_share(layer)]
            lines.append(f"{layer:>5}" + "".join(f"{cell!s:>18}" for cell in cells))
        return "\n".join(lines)

    def csv(self) -> str:
        """``records`` as CSV."""
        rows, out = self.records(), io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: the records, and per layer the mean energy of each term by position."""
        return {
            "label": self.label,
            "source": self.source,
            "terms": list(NAMES),
            "records": self.records(),
            "energy": self.energy.mean(axis=(1, 2)).tolist(),
            "total": self.total.mean(axis=(1, 2)).tolist(),
            "provenance": dict(self.provenance),
        }

    def _row(self, layer: int) -> int:
        if layer not in self.layers:
            raise invalid("layer", f"must be one of {list(self.layers)}", layer)
        return self.layers.index(layer)


def _term(name: str) -> int:
    if name not in NAMES:
        raise invalid("term", f"must be one of {', '.join(NAMES)}", name)
    return NAMES.index(name)


def _ratio(top: Float64[np.ndarray, "sequence probe"], bottom: Float64[np.ndarray, "sequence probe"]) -> Share:
    """Ratio of means with its delete-one jackknife error over sequences, else over probes."""
    axis = 1 if top.shape[0] > 1 else 0
    a, b = top.mean(axis=axis), bottom.mean(axis=axis)
    value = float(a.mean() / b.mean())
    count = len(a)
    if count < 2:
        return Share(value, None)
    left = (a.sum() - a) / (b.sum() - b)
    return Share(value, float(np.sqrt((count - 1) / count * ((left - left.mean()) ** 2).sum())))
