"""Addresses of remote workspaces: `ssh:HOST:/path`, `docker:NAME[:/path]`, `podman:NAME[:/path]`, `devcontainer:FOLDER`."""

import re
from typing import Final, Literal, cast

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value

RemoteKind = Literal["ssh", "docker", "podman", "devcontainer"]
PREFIX: Final = re.compile(r"(ssh|docker|podman|devcontainer):(.*)", re.DOTALL)
HOST: Final = re.compile(r"(?P<host>(?:[^\s:\[\]@-][^\s:\[\]@]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]@-][^\s:\[\]@]*)):(?P<path>.+)")  # fmt: skip
CONTAINER: Final = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]*)(?::(?P<path>.+))?")
EXAMPLES: Final = "ssh:HOST:/path, docker:NAME:/path, podman:NAME:/path or devcontainer:FOLDER"


class RemoteAddress(Value, frozen=True, kw_only=True):
    """Address of a workspace on another machine or in a container."""

    kind: RemoteKind
    host: str
    """A host of SSH, with a user if one is named; the name of a container; or the folder of a dev container, `.` if none is named."""
    path: str
    """Absolute, or from `~`; empty: the folder in which commands of the container start."""

    @property
    def name(self) -> str:
        """The address without the path, as messages show it."""
        return f"{self.kind}:{self.host}"


def parse_address(text: str) -> RemoteAddress:
    """Return the parts of an address.

    Raises:
        UsageError: It is no address; the text says what is wrong with it.
    """
    prefix = PREFIX.fullmatch(text)
    if prefix is None:
        message = f"{text!r} is no remote workspace; write {EXAMPLES}"
        raise UsageError(message)
    kind = cast("RemoteKind", prefix[1])
    if kind == "devcontainer" and "\0" not in prefix[2]:
        return RemoteAddress(kind=kind, host=prefix[2] or ".", path="")
    match = (HOST if kind == "ssh" else CONTAINER).fullmatch(prefix[2])
    if match is None:
        message = f"{text!r} names no host and path; write {EXAMPLES}"
        raise UsageError(message)
    path = match["path"] or ""
    if "\0" in path or "\n" in path or (path and path != "~" and not path.startswith(("/", "~/"))):
        message = f"the path in {text!r} must begin with / or ~/"
        raise UsageError(message)
    return RemoteAddress(kind=kind, host=match["host"], path=path)
