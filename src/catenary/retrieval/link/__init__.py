"""The link: what predicts a measured curve by slot on this model and template, and what does not."""

from catenary.retrieval.link.agreement import Agreement, Coefficient, Link, agree
from catenary.retrieval.link.correlation import pearson, permutation_p, spearman, split_half
from catenary.retrieval.link.predictors import PREDICTORS, ROWS, Predictor
from catenary.retrieval.link.prompt import LinkPrompt, make_prompt
from catenary.retrieval.link.readings import Readings, readings_from
from catenary.retrieval.link.table import LinkTable, link_table
from catenary.retrieval.link.verdict import LinkVerdict, judge_link

__all__ = [
    "PREDICTORS", "ROWS", "Agreement", "Coefficient", "Link", "LinkPrompt", "LinkTable", "LinkVerdict", "Predictor",
    "Readings", "agree", "judge_link", "link_table", "make_prompt", "pearson", "permutation_p",
    "readings_from", "spearman", "split_half",
]  # fmt: skip
