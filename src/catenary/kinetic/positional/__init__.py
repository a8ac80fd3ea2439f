"""Any positional kernel: the source profile by panels, thresholds, finite prompts by scans."""
