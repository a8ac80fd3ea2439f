"""One self-contained HTML page per report."""
