"""Compares hosts as whoever looks them up would: letter case and a last dot do not count, odd characters never match."""

import re

from agent_core.workspace.permissions.policy.rules.rule import EVERY_HOST

PLAIN_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
"""Names and IPv4 addresses. Other alphabets must come as `xn--`: the host that is shown must be the one asked for."""
ANY_BELOW = "*."


def covers_host(pattern: str, host: str) -> bool:
    """Return whether a rule's host means a host: the same name, one below `*.domain`, or any for `*`."""
    name = _plain(host)
    if name is None:
        return False
    if pattern == EVERY_HOST:
        return True
    wanted = pattern.lower().removesuffix(".")
    if wanted.startswith(ANY_BELOW):
        return name.endswith(wanted[1:])
    return name == wanted


def may_mean_host(pattern: str, host: str) -> bool:
    """Return whether a rule's host may mean a host; of a name that is not plain nobody knows, so it may."""
    return covers_host(pattern, host) or _plain(host) is None


def _plain(host: str) -> str | None:
    name = host.lower().removesuffix(".")
    return name if PLAIN_HOST.match(name) and ".." not in name else None
