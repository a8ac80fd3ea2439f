"""From a `config.json` to an Architecture: where it is found, how it is read, one small file per family."""
