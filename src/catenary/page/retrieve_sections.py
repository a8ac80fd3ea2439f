"""What stands on the page of a retrieval study beside its curves: the gains of an order, and the link."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from catenary.errors import InvalidInput
from catenary.page.gains import gains_section
from catenary.page.link import link_section
from catenary.page.retrieve import Section
from catenary.retrieval.link.agreement import agree
from catenary.retrieval.link.predictors import PREDICTORS
from catenary.retrieval.link.table import LinkTable
from catenary.retrieval.order.advice import advise
from catenary.retrieval.order.assign import SlotWeights
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.statistics import slot_curve
from catenary.study.retrieve import RetrieveStudy

ORDERS = ("jacobian", "attention", "birth")
"""Predictors whose own order of documents is judged beside that of the measured curve."""


def sections_of(found: RetrieveStudy, metric: str, seed: int = 0) -> list[Section]:
    """The sections of a study: held-out gains of orders, and the link where prompts were read for it.

    Both are of the log-probability where there is one, then of ``metric``; the link also of exact match.
    """
    outcomes = found.outcomes
    sections = []
    foremost = [name for name in dict.fromkeys(("logp", metric)) if name in outcomes.values]
    predicted = {} if found.link is None else _predicted(found.link)
    advices, notes = {}, []
    for name in foremost:
        try:
            advices[name] = advise(outcomes, metric=name, seed=seed, predicted=predicted)
        except InvalidInput as reason:
            notes.append(f"What an order gains is not reported: {reason}.")
    sections.append(gains_section(advices, tuple(dict.fromkeys(notes))))
    if found.link is not None:
        sections.append(_linked(outcomes, found.link, [*foremost, "exact"], found.link_notes, seed))
    return sections


def _linked(
    outcomes: Outcomes, table: LinkTable, metrics: list[str], notes: tuple[str, ...], seed: int
) -> Section:
    links, refused = {}, {}
    for name in dict.fromkeys(metrics):
        if name in outcomes.values:
            try:
                links[name] = agree(slot_curve(outcomes, name, seed), table, seed)
            except InvalidInput as reason:
                refused[name] = str(reason)
    return link_section(links, table, notes, refused)


def _predicted(table: LinkTable) -> Mapping[str, SlotWeights]:
    """Orders by predictors of held-out prompts, which did not see the samples they are judged on."""
    found = {}
    for name in ORDERS:
        logs = table.logs(name)
        if not isinstance(logs, str) and len(table.slots) > 1:
            curve = np.exp(np.nanmean(logs, axis=0))
            found[f"by {PREDICTORS[name].label}"] = SlotWeights(tuple(table.x.tolist()), tuple(curve.tolist()))
    return found
