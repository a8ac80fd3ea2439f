"""Token windows: from documents, random vectors, Zipf draws."""
