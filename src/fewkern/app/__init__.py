"""The command ``fewkern``: fit, check, predict, info, plot, report, compress, export."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; says what to install where typer, rich or pandas are missing."""
    try:
        try:
            from fewkern.app._commands import app
        except ImportError as error:
            packages = "typer rich pandas pyarrow matplotlib jinja2"
            sys.exit(f"fewkern: the command line needs more packages ({error}): pip install {packages}")
        app()
    except KeyboardInterrupt:  # while modules are imported; the commands say themselves what they have written
        sys.stderr.write("fewkern: stopped; nothing was written.\n")
        sys.exit(130)
    except Exception as error:  # outside of a command
        from fewkern.app._terminal import one_line

        sys.exit(f"fewkern: {one_line(error)}")
