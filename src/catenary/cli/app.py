"""The application object, and what every command does with errors: one clean line, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

app = typer.Typer(
    name="catenary",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
    epilog="Exit codes: 0 done, 2 something you can fix (one line says what), 1 a bug of ours.",
)


INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it; typer returns it when it caught the interrupt itself."""


def _version(asked: bool) -> None:
    if asked:
        from catenary import __version__

        typer.echo(f"catenary {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Predict, measure and compare **position bias** (lost in the middle) of causal language models.

    MODEL is a hub id, a model folder, a `config.json` or a preset name; `preset:NAME` and `hub:NAME` force one.
    """


def main() -> None:
    """Run the command line; never a traceback unless ``--debug`` is given."""
    from catenary.errors import InvalidInput

    # Threads that wait by sleeping: on cores shared with other work, spinning ones make torch several times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    try:
        code = app(prog_name="catenary", standalone_mode=False, obj=debug)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except InvalidInput as error:
        _fail(f"error: {error}", 2, debug)
    except (KeyboardInterrupt, typer.Abort):
        said = "interrupted; what a profile or measurement finished is kept, the same command resumes"
        _fail(said, INTERRUPTED, debug)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # typer's own usage errors print themselves
            error.show()
            sys.exit(error.exit_code)
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        _fail(f"internal error: {what}; this is a bug of ours, --debug shows where", 1, debug)


def _fail(line: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"catenary: {line}\n")
    sys.exit(code)
