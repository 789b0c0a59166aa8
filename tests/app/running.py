"""Run a command in this process."""

import io
import re

import pandas as pd
from typer.testing import CliRunner

from fewkern.app._commands import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def fails(*arguments, match):
    """Exit code 1, one message on stderr, nothing on stdout, no traceback."""
    result = run(*arguments, code=1)
    assert re.search(match, result.stderr), result.stderr
    assert result.stderr.startswith("fewkern: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return result


def predicted(*arguments):
    return pd.read_csv(io.StringIO(run("predict", *arguments).stdout), skip_blank_lines=False)
