"""The response and the retrieval profile in closed form, and the regimes they fall into."""
