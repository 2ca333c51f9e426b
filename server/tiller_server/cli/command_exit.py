"""How a command ends that works for its user: with its exit code, and with what went wrong told once."""

import sys
from collections.abc import Callable

from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode as to_json
from tiller_server.cli.exit_codes import FAILED, code_of_error, complain
from tiller_server.cli.terminal.stdio import OutputLost, abandon, speak_json


def code_of(command: str, work: Callable[[], int], *, debug: bool, as_json: bool = False) -> int:
    """Run the work of a command; return the exit code.

    An error is written as one sentence to standard error, and for programs that read JSON as a line to standard output
    too. Output that cannot be written is reported on standard error only.

    Args:
        command: Name of the command.
        work: Function to run; returns the exit code when no error is raised.
        debug: Raise an error of the work, with its traceback, instead of reporting it.
        as_json: Whether the output is read as JSON.

    Raises:
        TillerError: The work failed, and `debug` is set. Never `OutputLost`.
    """
    try:
        return work()
    except OutputLost as error:
        complain(command, str(error))
        abandon()
        return FAILED
    except TillerError as error:
        if debug:
            raise
        if as_json:
            speak_json()
            body = to_json({"type": "error", "error": {"kind": error.kind, "message": str(error)}})
            _ = sys.stdout.write(body.decode() + "\n")
            _ = sys.stdout.flush()
        complain(command, str(error))
        return code_of_error(error)
