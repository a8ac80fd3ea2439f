"""Strengths of one model: predicted at birth, measured untrained, measured trained where the weights are there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, NotApplicable
from catenary.reading import align, number
from catenary.strengths import Branch, Strengths, pooled_strengths
from catenary.study.config import StudyConfig
from catenary.study.finished import Finished
from catenary.study.inputs import build_windows
from catenary.study.measuring import identity_of, load_net
from catenary.study.observer import Observer, counting
from catenary.study.parts import Part
from catenary.study.source import Source, find_source, with_files
from catenary.text.synthetic import repeat_probability
from catenary.text.windows import Windows
from catenary.theory.strengths import predicted_strengths


@dataclass(frozen=True)
class StrengthsStudy:
    """The columns of one study, in order, and what was left out with its reason."""

    model: str
    columns: tuple[Strengths, ...]
    skipped: tuple[str, ...] = ()

    def table(self) -> str:
        """One line per branch and layer with every column's strength, then the sums, and what was left out."""
        heading = f"{self.model}: |b| / (|x| + |b|), mean over {self.columns[0].length} tokens"
        notes = (f"  note: {s}" for s in (*self.statements, *self.skipped))
        return "\n".join([heading, align([(f"  {head}", *cells) for head, *cells in self.rows()]), *notes])

    def rows(self) -> list[tuple[str, ...]]:
        """The table as text: a heading, a row per branch and layer, the sums of strengths and of energy shares."""
        lines = [("layer", "branch", *(column.label for column in self.columns))]
        for rows in zip(*(column.rows for column in self.columns), strict=True):
            lines.append((str(rows[0].layer), rows[0].branch, *(_with(r.strength, r.standard_error) for r in rows)))
        for branch in self.columns[0].branches:
            lines.append(("sum", branch, *(self.total(column, branch) for column in self.columns)))
        for branch in self.columns[0].branches:
            energies = (number(column.total_energy(branch)) for column in self.columns)
            lines.append(("sum of |b|^2/(|x|^2+|b|^2)", branch, *energies))
        return lines

    def total(self, column: Strengths, branch: Branch) -> str:
        """A column's sum over layers as text, with its standard error where there is one."""
        return _with(column.total(branch), column.sum_errors.get(branch))

    @property
    def statements(self) -> tuple[str, ...]:
        """What the columns say beside their numbers, each once."""
        return tuple(dict.fromkeys(s for column in self.columns for s in column.statements))

    def records(self) -> list[dict[str, Any]]:
        """One flat record per column, branch and layer."""
        return [{"model": self.model, **record} for column in self.columns for record in column.records()]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        columns = [column.to_dict() for column in self.columns]
        return {"model": self.model, "columns": columns, "skipped": list(self.skipped)}


def study_strengths(
    config: StudyConfig, nets: int, windows: int, observer: Observer, folder: Path | None = None
) -> StrengthsStudy:
    """Predict and measure untrained networks on random vectors, and with a tokenizer on documents as the trained one.

    Tokens that repeat add up in attention, so that only columns of the same inputs say what training did.

    Args:
        config: model, length, seed, documents and how to load.
        nets: untrained networks, 0 for none.
        windows: per network.
        observer: hears what is being done.
        folder: where finished networks are kept, from which a killed run goes on; None keeps nothing.

    Raises:
        InvalidInput: what loading and measuring refuse.
    """
    source = find_source(config)
    observer.say(f"{source.located.source}\n{source.architecture.describe()}")
    columns: list[Strengths] = []
    skipped: list[str] = []
    try:
        columns.append(predicted_strengths(source.architecture, config.length))
    except InvalidInput as error:
        skipped.append(f"no prediction: {error}")
    if nets:
        part = Part("untrained", "untrained, random", "untrained", ("random",), nets, windows, 1)
        columns.append(pooled_strengths(_measured(config, source, part, observer, folder), part.label))
        try:
            held = with_files(source, config)
        except InvalidInput as error:
            skipped.append(f"no trained network: {error}")
        else:
            columns += _on_documents(config, held, nets, windows, observer, folder, skipped)
    if not columns:
        raise InvalidInput(f"nothing to show for {config.model!r}: {'; '.join(skipped)}")
    return StrengthsStudy(source.located.name, _alike(columns, skipped), tuple(skipped))


def _on_documents(
    config: StudyConfig, held: Source, nets: int, windows: int, observer: Observer, folder: Path | None,
    skipped: list[str],
) -> list[Strengths]:
    """Predicted, untrained and trained on windows of documents; without a tokenizer none, without weights two."""
    if held.tokenizer is None:
        skipped.append(f"nothing on documents: {held.no_tokenizer}")
        return []
    part = Part("untrained", "untrained, documents", "untrained", ("vanilla",), nets, windows, 1)
    columns = []
    try:
        rate = repeat_probability(build_windows("vanilla", config, held, part).ids)
        predicted = predicted_strengths(held.architecture, config.length, rate)
        columns.append(replace(predicted, label="predicted, documents"))
    except NotApplicable as error:
        skipped.append(f"no prediction on documents: {error}")
    columns.append(pooled_strengths(_measured(config, held, part, observer, folder), part.label))
    if held.weights is None:
        skipped.append(f"no trained network: {held.no_weights}")
        return columns
    trained = Part("trained", "trained, documents", "pretrained", ("vanilla",), 1, windows, 1)
    return [*columns, replace(_measured(config, held, trained, observer, folder)[0], label=trained.label)]


def _measured(
    config: StudyConfig, source: Source, part: Part, observer: Observer, folder: Path | None
) -> list[Strengths]:
    from catenary.measure.strengths import measure_strengths

    (kind,) = part.tokens
    made = build_windows(kind, config, source, part)
    kept = Finished(folder, identity_of(config, source, part))
    found = []
    with counting(observer, part.label, part.nets) as progress:
        for net in range(part.nets):
            fed = replace(made, ids=made.ids[net * part.windows : (net + 1) * part.windows])

            def measure(net: int = net, fed: Windows = fed) -> dict[str, Any]:
                return measure_strengths(load_net(config, part, net), fed, batch_size=config.batch_size).to_dict()

            found.append(Strengths.from_dict(kept.record(f"strengths-{part.name}-net{net:03d}", fed, measure)))
            progress(net + 1, part.nets)
    return found


def _alike(columns: list[Strengths], skipped: list[str]) -> tuple[Strengths, ...]:
    """The columns with the branches of the last one; a prediction of other branches cannot stand beside it."""
    kept = []
    wanted = [(row.layer, row.branch) for row in columns[-1].rows]
    for column in columns:
        if [(row.layer, row.branch) for row in column.rows] == wanted:
            kept.append(column)
        else:
            skipped.append(f"{column.label}: other branches than the network that was measured")
    return tuple(kept)


def _with(value: float, error: float | None) -> str:
    return number(value) if error is None else f"{number(value)} +- {number(error)}"
