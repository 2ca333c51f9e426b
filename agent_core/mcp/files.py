"""Reads the `mcp.json` files that count for a workspace: the user's, and the project's once it is trusted."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from agent_core.kernel.values import Value
from agent_core.mcp.definitions import Defined, McpServerOrigin, Server, read_definitions
from agent_core.resources.json_text import JsonTextError, read_object
from agent_core.resources.paths import project_folder

FILE_BYTES: Final = 1024 * 1024


class ServerFiles(Value, frozen=True, kw_only=True):
    """The files that define servers. Of two servers with one name, the one defined nearer to the workspace wins."""

    config: Path
    """The user's configuration folder."""
    root: Path
    env: Mapping[str, str]
    is_trusted: Callable[[], bool]
    """Whether the workspace may configure us; its files are not even opened before."""
    expected: Callable[[Path], str | None] = lambda _: None
    """Returns the SHA-256 of the trusted content of a workspace file; None: any."""

    async def read(self) -> Defined:
        """Read the current definitions. Never raises: a file that cannot be read is a problem in the result."""
        # Asked here: the answer belongs to the thread of the session.
        return await anyio.to_thread.run_sync(self._read, self.is_trusted())

    def read_now(self) -> Defined:
        """Do as `read` does, blocking."""
        return self._read(self.is_trusted())

    def _read(self, with_project: bool) -> Defined:  # noqa: FBT001 - for a thread
        found: dict[str, Server] = {}
        problems: list[str] = []
        places: list[tuple[Path, McpServerOrigin]] = [(self.config / "mcp.json", "user")]
        if with_project:
            places.append((self.root / ".mcp.json", "project"))
            places.append((project_folder(self.root) / "mcp.json", "project"))
        for path, origin in places:
            defined = self._of(path, origin)
            problems.extend(defined.problems)
            found.update({server.name: server for server in defined.servers})
        return Defined(servers=tuple(found.values()), problems=tuple(problems))

    def _of(self, path: Path, origin: McpServerOrigin) -> Defined:
        expected = self.expected(path) if origin == "project" else None
        try:
            raw = _bytes_of(path)
            if raw is None:
                return Defined()
            if expected is not None and hashlib.sha256(raw).hexdigest() != expected:
                return Defined(
                    problems=(f"{path} is not what was trusted any more; it is not used",)
                )
            document = read_object(raw.decode("utf-8-sig"))
        except JsonTextError as error:
            where = f":{error.place.line}:{error.place.column}" if error.place else ""
            return Defined(problems=(f"{path}{where} {error}; no MCP server of it is used",))
        except (OSError, UnicodeError, RecursionError) as error:
            return Defined(problems=(f"{path} cannot be read: {_why(error)}",))
        return read_definitions(document, at=path, origin=origin, root=self.root, env=self.env)


def _why(error: OSError | UnicodeError | RecursionError) -> str:
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeError():
            return "it is not UTF-8 text"
        case RecursionError():
            return "it is nested too deeply"


def _bytes_of(path: Path) -> bytes | None:
    """Read a file; None when there is none.

    Raises:
        OSError: It cannot be read, is none, or is too large.
    """
    # Not to wait for a writer when it is a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is no regular file")
    with os.fdopen(handle, "rb") as file:
        raw = file.read(FILE_BYTES + 1)
    if len(raw) > FILE_BYTES:
        raise OSError(0, f"it has more than {FILE_BYTES} bytes")
    return raw
