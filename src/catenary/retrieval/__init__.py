"""Where a model loses facts: tasks, scores, statistics, links and orders."""
