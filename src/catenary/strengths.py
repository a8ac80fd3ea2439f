"""Strengths: how much each branch of each layer adds to the residual stream, against what was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any, Literal

from catenary.errors import invalid
from catenary.reading import align, number

Branch = Literal["attention", "feed-forward"]

BRANCHES: tuple[Branch, ...] = ("attention", "feed-forward")


@dataclass(frozen=True)
class Strength:
    r"""One branch b beside the stream x it is added to, averaged over tokens (and sequences, and networks).

    Attributes:
        layer: 0-based, from the bottom.
        branch: which one.
        strength: mean of \(\lambda = \|b\|/(\|x\|+\|b\|)\), the mixing strength of arXiv 2602.16837 for attention.
        energy: mean of \(\|b\|^2/(\|x\|^2+\|b\|^2)\). Branches of a random network are orthogonal to the stream, so
            that second moments, and with them the Jacobian, follow this share and not the first, which is larger.
        stream, added: root mean square of one coordinate of x and of b.
        token_sd: standard deviation of lambda over tokens and sequences; None where only the mean is known.
        standard_error: of ``strength``, over sequences or networks; None where there is one, or none.
    """

    layer: int
    branch: Branch
    strength: float
    energy: float
    stream: float
    added: float
    token_sd: float | None = None
    standard_error: float | None = None


@dataclass(frozen=True)
class Strengths:
    """The strengths of every branch of a network, or of a prediction.

    Attributes:
        label: the words a legend shows.
        length: tokens per sequence.
        rows: one per branch, from the bottom.
        sum_errors: standard error of the sum of strengths over layers, by branch, where there is one.
        statements: what a reader must know beside the numbers.
        provenance: plain JSON values from which they can be computed again.
    """

    label: str
    length: int
    rows: tuple[Strength, ...]
    sum_errors: Mapping[str, float] = field(default_factory=dict)
    statements: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def of(self, branch: Branch = "attention") -> tuple[Strength, ...]:
        """The rows of one branch.

        Raises:
            InvalidInput: the network has no such branch.
        """
        found = tuple(row for row in self.rows if row.branch == branch)
        if not found:
            raise invalid("branch", f"must be one that {self.label!r} has", branch)
        return found

    def values(self, branch: Branch = "attention") -> tuple[float, ...]:
        r"""\(\lambda_t\) of one branch, from the bottom: what a rollout's schedule takes."""
        return tuple(row.strength for row in self.of(branch))

    def total(self, branch: Branch = "attention") -> float:
        r"""\(\sum_t\lambda_t\)."""
        return sum(self.values(branch))

    def total_energy(self, branch: Branch = "attention") -> float:
        """The sum of the energy shares."""
        return sum(row.energy for row in self.of(branch))

    def records(self) -> list[dict[str, Any]]:
        """One flat record per branch, for a table or CSV."""
        return [{"label": self.label, "length": self.length, **vars(row)} for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "label": self.label,
            "length": self.length,
            "rows": [dict(vars(row)) for row in self.rows],
            "sums": {
                branch: {
                    "strength": self.total(branch),
                    "energy": self.total_energy(branch),
                    "standard_error": self.sum_errors.get(branch),
                }
                for branch in self.branches
            },
            "statements": list(self.statements),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Strengths:
        """Back from ``to_dict``, number for number."""
        return cls(
            stored["label"], stored["length"], tuple(Strength(**row) for row in stored["rows"]),
            {branch: sums["standard_error"] for branch, sums in stored["sums"].items()
             if sums["standard_error"] is not None},
            tuple(stored["statements"]), stored["provenance"],
        )  # fmt: skip

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches there are."""
        return tuple(branch for branch in BRANCHES if any(row.branch == branch for row in self.rows))

    def table(self) -> str:
        """A heading, one line per branch and layer, the sums, and the statements."""
        head = ("  layer", "branch", "strength", "+-", "sd over tokens", "energy share", "rms stream", "rms added")
        lines: list[tuple[str, ...]] = [head]
        for row in self.rows:
            errors = (_optional(row.standard_error), _optional(row.token_sd))
            sizes = tuple(number(value) for value in (row.energy, row.stream, row.added))
            lines.append((f"  {row.layer}", row.branch, number(row.strength), *errors, *sizes))
        for branch in self.branches:
            error = _optional(self.sum_errors.get(branch))
            total = (number(self.total(branch)), error, "", number(self.total_energy(branch)), "", "")
            lines.append(("  sum", branch, *total))
        return "\n".join([f"{self.label} (L = {self.length})", align(lines), *(f"  {s}" for s in self.statements)])

    def __repr__(self) -> str:
        """One line: label and sums."""
        sums = ", ".join(f"{branch} {number(self.total(branch))}" for branch in self.branches)
        return f"Strengths({self.label!r}, sums: {sums})"


def pooled_strengths(parts: Sequence[Strengths], label: str) -> Strengths:
    """The mean over several networks of one architecture, with standard errors over networks.

    Raises:
        InvalidInput: no network, or networks of unlike branches or lengths.
    """
    if not parts:
        raise invalid("parts", "must hold at least one network", "none")
    if len({(part.length, tuple((row.layer, row.branch) for row in part.rows)) for part in parts}) != 1:
        raise invalid("parts", "must have the same layers and length", [part.label for part in parts])
    sums = {branch: _error([part.total(branch) for part in parts]) for branch in parts[0].branches}
    return Strengths(
        label,
        parts[0].length,
        tuple(_pooled(rows) for rows in zip(*(part.rows for part in parts), strict=True)),
        {branch: error for branch, error in sums.items() if error is not None},
        tuple(dict.fromkeys(statement for part in parts for statement in part.statements)),
        {"networks": [dict(part.provenance) for part in parts]},
    )


def _pooled(rows: tuple[Strength, ...]) -> Strength:
    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    strength = mean([row.strength for row in rows])
    spreads = [row.token_sd for row in rows if row.token_sd is not None]
    within = mean([spread**2 for spread in spreads]) if spreads else 0.0
    between = mean([(row.strength - strength) ** 2 for row in rows])
    return Strength(
        rows[0].layer,
        rows[0].branch,
        strength,
        mean([row.energy for row in rows]),
        mean([row.stream**2 for row in rows]) ** 0.5,
        mean([row.added**2 for row in rows]) ** 0.5,
        (within + between) ** 0.5 if spreads else None,
        _error([row.strength for row in rows]) if len(rows) > 1 else rows[0].standard_error,
    )


def _error(values: list[float]) -> float | None:
    """Standard error of the mean; None for one value alone."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def _optional(value: float | None) -> str:
    return "" if value is None else number(value)
