"""`python -m catenary` is the command line."""

from catenary.cli.main import main

if __name__ == "__main__":
    main()
