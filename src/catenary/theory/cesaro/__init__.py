"""The Cesàro theory of arXiv 2603.10123, its limits, and the scalar second-moment path sum."""
