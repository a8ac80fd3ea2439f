"""How to cite: the two papers the theory comes from, and this package."""

from __future__ import annotations

from catenary import __version__

PAPERS = """@misc{chowdhury2026birth,
  title         = {Lost in the Middle at Birth: An Exact Theory of Transformer Position Bias},
  author        = {Chowdhury, Borun D.},
  year          = {2026},
  eprint        = {2603.10123},
  archivePrefix = {arXiv}
}

@misc{duerinckx2026kinetic,
  title         = {Kinetic theory for Transformers and the lost-in-the-middle phenomenon},
  author        = {Duerinckx, Mitia and Geshkovski, Borjan and Rossi, Stefano},
  year          = {2026},
  eprint        = {2605.09213},
  archivePrefix = {arXiv}
}
"""


def bibtex() -> str:
    """BibTeX entries for the two papers and for this version of the package."""
    return PAPERS + f"""
@software{{catenary,
  title   = {{catenary: position bias in causal transformer language models, predicted and measured}},
  author  = {{{{The catenary developers}}}},
  version = {{{__version__}}}
}}
"""
