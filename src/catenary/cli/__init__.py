"""The command line: thin over the Python API, one file per verb."""
