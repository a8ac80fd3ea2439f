"""The mean field: the layered equation, its correlations, the response near a curve."""
