"""Scores of a case: its tokens, the answer's log-probability, a greedy generation, and whether that answers."""
