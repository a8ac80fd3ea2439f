"""Estimators of correlations between tokens, with standard errors."""
