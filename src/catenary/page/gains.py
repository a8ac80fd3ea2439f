"""What an order of documents gains, on the page of a retrieval study: held-out gains by the measured curve."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.page.exhibit import Plate, Table
from catenary.page.order import gains_chart
from catenary.page.retrieve import Section
from catenary.retrieval.order.advice import Advice
from catenary.retrieval.order.gain import separation_name
from catenary.retrieval.outcomes import WORDS


def gains_section(advices: Mapping[str, Advice], refused: tuple[str, ...] = ()) -> Section:
    """The section of the orders by the curves of several metrics, the first of them drawn.

    Args:
        advices: by metric, from ``advise``; one without gains says why.
        refused: sentences on metrics that have none.
    """
    plates: list[Plate] = []
    notes, tables = list(refused), []
    for metric, advice in advices.items():
        notes += [f"Order by {WORDS[metric]}: {advice.verdict.words}", *advice.verdict.notes]
        if advice.gains is None:
            continue
        if not plates:
            plates.append(
                Plate("order", gains_chart(advice.gains), advice.verdict.words,
                      f"Held-out gain in {WORDS[metric]} of each order over documents in an order that tells nothing, "
                      "by the retriever's strength d'; bars are 95 % over samples.")
            )  # fmt: skip
        tables.append(_table(metric, advice))
    results = {metric: advice.to_dict() for metric, advice in advices.items()}
    return Section("order", tuple(plates), tuple(notes), (), results, tuple(tables))


def _table(metric: str, advice: Advice) -> Table:
    gains = advice.gains
    assert gains is not None
    caption = (
        f"Gain in {WORDS[metric]} over the given order, whose mean is {gains.given:.3f}, by the retriever's strength "
        "d'; the measured curve is of one half of the samples and judged on the other"
    )
    columns = ("order", *(f"d' = {separation_name(d)}" for d in gains.separations))
    return Table(caption, columns, tuple((name, *(one.text for one in row)) for name, row in gains.gain.items()))
