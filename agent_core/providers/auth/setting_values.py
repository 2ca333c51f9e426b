"""Keys and headers as a user may write them: literal, from a variable, or from a command's output."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping

import anyio
import anyio.abc
from anyio import to_thread

COMMAND_S = 10.0
CLOSE_S = 1.0
OUTPUT_BYTES = 64 * 1024
COMMAND_MARK = "!"

_TOKEN = re.compile(r"\$(?:([$!])|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


class ValueMissing(Exception):
    """A value cannot be found; the text says what to do and holds no secret."""


def missing_variables(written: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name the variables that a written value asks for and that are not set, or empty."""
    if written.startswith(COMMAND_MARK):
        return ()
    names = (found.group(2) or found.group(3) for found in _TOKEN.finditer(written))
    return tuple(str(name) for name in names if name and not environment.get(str(name)))


def filled(written: str, environment: Mapping[str, str]) -> str | None:
    """Substitute environment variables in a text; None when one of them is not set or is empty."""
    if missing_variables(written, environment):
        return None
    return _TOKEN.sub(lambda found: _replaced(found, environment), written)


async def found_value(written: str, environment: Mapping[str, str]) -> str:
    """Find what a written value stands for.

    `$NAME` and `${NAME}` are variables, `$$` and `$!` the signs themselves; a leading `!` runs the rest as a
    shell command, whose output is the value.

    Raises:
        ValueMissing: A variable is not set, or the command failed, said nothing or took too long.
    """
    if written.startswith(COMMAND_MARK):
        return await _output(written.removeprefix(COMMAND_MARK), environment)
    value = filled(written, environment)
    if value is None:
        missing = missing_variables(written, environment)
        message = f"set the environment variable {' and '.join(missing)}"
        raise ValueMissing(message)
    return value


def _replaced(found: re.Match[str], environment: Mapping[str, str]) -> str:
    sign, braced, bare = (str(group or "") for group in found.groups())
    return sign or environment[braced or bare]


async def _output(command: str, environment: Mapping[str, str]) -> str:
    """Run a command; its text may hold a secret, so errors do not quote it."""
    # Its folders of programs may be looked at on the disk.
    env = await to_thread.run_sync(dict, environment)
    try:
        process = await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        message = f"the command that gives the key cannot be started ({error.strerror})"
        raise ValueMissing(message) from None
    text = ""
    ended = False
    try:
        with anyio.move_on_after(COMMAND_S):
            text = await _read(process)
            ended = await process.wait() == 0
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            _kill(process)
            await process.aclose()
    if not ended or not text.strip():
        message = f"the command that gives the key gave none within {COMMAND_S:g} s; run it by hand to see why"
        raise ValueMissing(message)
    return text.strip()


async def _read(process: anyio.abc.Process) -> str:
    output = bytearray()
    if process.stdout is not None:
        async for chunk in process.stdout:
            output += chunk
            if len(output) > OUTPUT_BYTES:
                return ""
    return output.decode("utf-8", "replace")


def _kill(process: anyio.abc.Process) -> None:
    """End what the command left behind: it has a process group of its own."""
    if sys.platform == "win32":
        if process.returncode is None:
            process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
