"""How a command ends that works for its user: with its exit code, and with what went wrong told once."""

import sys
from collections.abc import Callable

from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode as to_json
from tiller_server.cli.exits import FAILED, code_of_error, complain
from tiller_server.cli.standard import OutputLost, abandon, speak_json


def code_of(command: str, work: Callable[[], int], *, debug: bool, as_json: bool = False) -> int:
    """Do the work of a command; gives the exit code.

    What goes wrong is one sentence on standard error, and for programs that read JSON a line on standard output too.

    Args:
        command: Its name.
        work: What it does; gives the exit code when nothing goes wrong.
        debug: Let the error through, with where it happened.
        as_json: Its output is read as JSON.

    Raises:
        TillerError: Something went wrong, and that is to be seen.
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
