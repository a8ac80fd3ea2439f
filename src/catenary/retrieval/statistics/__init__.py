"""Curves by slot and what can be said of them: means and bands, contrasts, a verdict, sample counts."""

from catenary.retrieval.statistics.contrasts import SlotTest, contrasts, holm, sign_flip_p, slot_tests, worst_slots
from catenary.retrieval.statistics.curve import SlotCurve, slot_curve
from catenary.retrieval.statistics.resolve import detectable, paired_sd, samples_for, samples_range
from catenary.retrieval.statistics.simultaneous import Gaps, gaps_of_means, gaps_of_rows
from catenary.retrieval.statistics.summary import Summary, judge_means, metrics_of, summarise
from catenary.retrieval.statistics.verdict import SlotVerdict, judge_slots

__all__ = [
    "Gaps", "SlotCurve", "SlotTest", "SlotVerdict", "Summary", "contrasts", "detectable", "gaps_of_means",
    "gaps_of_rows", "holm", "judge_means", "judge_slots", "metrics_of", "paired_sd", "samples_for", "samples_range",
    "sign_flip_p", "slot_curve", "slot_tests", "summarise", "worst_slots",
]  # fmt: skip
