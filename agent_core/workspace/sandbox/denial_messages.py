"""Recognises in a command's output what containment kept it from, and says how to go on. Pure."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.guards.mount_plan import GitAccess

NO_NETWORK: Final = re.compile(
    "|".join(
        (
            "temporary failure in name resolution|could not resolve|couldn't resolve|unable to resolve host",
            "name or service not known|nodename nor servname|no address associated with hostname",
            "network is unreachable|network unreachable|failed to lookup address|dns error|EAI_AGAIN",
            r"ENETUNREACH|getaddrinfo (ENOTFOUND|failed)|dial (tcp|udp)[^\n]*(lookup|unreachable)",
            r"bad address ['\"(]",
        )
    ),
    re.IGNORECASE,
)
NO_SOCKETS: Final = re.compile(
    r"(socket|AF_UNIX|unix domain)[^\n]*(operation not permitted|EPERM)|forkserver[\s\S]{0,2000}Operation not permitted",
    re.IGNORECASE,
)
READ_ONLY: Final = re.compile(
    r"read-only file system|EROFS|\(os error 30\)|\[Errno 30\]", re.IGNORECASE
)
BUSY: Final = re.compile(r"device or resource busy|resource busy|EBUSY", re.IGNORECASE)
GIT: Final = re.compile(
    r"\.git/|\.git\b|config file|git config|hooks?/|cannot lock ref|index\.lock|repository database"
)
GIT_SETTINGS: Final = re.compile(
    r"config|hooks?/|\binfo/|attributes|worktrees?/|modules/|alternates"
)
CROSSING: Final = re.compile(r"invalid cross-device link|EXDEV|\[Errno 18\]", re.IGNORECASE)
MISSING: Final = re.compile(
    r"no such file|not found|cannot (open|access|find|read)|permission denied|does not exist|unable to",
    re.IGNORECASE,
)
LOOKED_AT_CHARS: Final = 16_384

NETWORK_SAID: Final = (
    'Containment has no network, so this could not connect. If it must, run it again with needs: ["network"]; '
    "the user is asked unless they have allowed it."
)
SOCKETS_SAID: Final = (
    "Containment refuses unix sockets, which lead to other programs of the user. If this command must have them, run it "
    'again with needs: ["sockets"]; the user is asked. For connections to the internet and to ports of this machine ask for '
    '"network" instead.'
)
GIT_DATA_SAID: Final = (
    "Containment lets only commands of git change a repository. Run git add, commit and the like in a call of their own, "
    "with plain words: no redirections, substitutions or other programs in the same command. If another program must "
    'change .git, run it with needs: ["gitConfig"]; the user is asked unless they have allowed it.'
)
EXCHANGE_SAID: Final = (
    "Containment holds folders with protected files in their place, so nothing can be renamed into or out of them in one "
    "step. Copy it and remove the original instead."
)
GIT_SAID: Final = (
    "Containment keeps git's configuration and hooks as they are. If this command must change them, run it again with "
    'needs: ["gitConfig"]; the user is asked unless they have allowed it.'
)
PROTECTED_SAID: Final = (
    "Containment keeps {name} as it is, because it is a protected name. Change it with the edit or write tool; the user "
    "is asked."
)
OUTSIDE_SAID: Final = (
    "Containment lets a command write only inside the workspace and to /tmp, which is private. Use a path there, or tell "
    "the user what must be changed elsewhere."
)
HIDDEN_SAID: Final = (
    "{name} holds secrets as a rule, so commands see it empty and cannot change it. If its content is needed, read it with "
    "the read tool: the user is asked, and commands see it from then on."
)
MASKED_SAID: Final = "{place} holds secrets and shows as empty to a contained command. Go on without it, or tell the user what is needed."


class CommandLimits(Value, frozen=True, kw_only=True):
    """Limits under which a command ran."""

    network: bool
    """It had the network."""
    git: GitAccess
    """Access that it had to repositories."""
    guarded: tuple[str, ...]
    """Names that were read-only."""
    masked: tuple[Path, ...]
    secrets: tuple[str, ...] = ()
    """Names in the workspace that showed as empty."""
    home: Path
    sockets: bool = False
    """It could make unix sockets."""


def denials(output: str, *, exit_code: int | None, walls: CommandLimits) -> tuple[str, ...]:
    """Return the operations that containment denied, a sentence each.

    Args:
        output: The end of the command's output.
        exit_code: With 0 no operation was denied; None: a signal ended the command.
        walls: Limits under which the command ran.
    """
    if exit_code == 0:
        return ()
    return tuple(dict.fromkeys(_said(output[-LOOKED_AT_CHARS:], walls)))


def _said(text: str, walls: CommandLimits) -> Iterator[str]:
    if not walls.network and NO_NETWORK.search(text):
        yield NETWORK_SAID
    if not walls.sockets and NO_SOCKETS.search(text):
        yield SOCKETS_SAID
    for line in text.splitlines():
        if READ_ONLY.search(line) or BUSY.search(line):
            yield _about_writing(line, walls)
        elif CROSSING.search(line):
            yield EXCHANGE_SAID
        elif MISSING.search(line):
            yield from _about_masks(line, walls)


def _about_writing(line: str, walls: CommandLimits) -> str:
    if GIT.search(line) and walls.git != "open":
        return GIT_SAID if walls.git == "data" or GIT_SETTINGS.search(line) else GIT_DATA_SAID
    for name in walls.secrets:
        if name in line:
            return HIDDEN_SAID.format(name=name)
    for name in walls.guarded:
        if name in line:
            return PROTECTED_SAID.format(name=name)
    return OUTSIDE_SAID


def _about_masks(line: str, walls: CommandLimits) -> Sequence[str]:
    for place in walls.masked:
        spelt = [str(place)]
        if place.is_relative_to(walls.home):
            spelt.append(f"~/{place.relative_to(walls.home)}")
        if any(one in line for one in spelt):
            return (MASKED_SAID.format(place=spelt[-1]),)
    return tuple(HIDDEN_SAID.format(name=name) for name in walls.secrets if name in line)
