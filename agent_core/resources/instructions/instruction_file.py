"""Reads one file of instructions: bounded, decoded, and only if it is what it seems to be."""

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.protected_names import is_secret

CONTEXT_BYTES = 64 * 1024
"""More of one file is not used: instructions that long are not followed anyway."""
WHOLE_BYTES = 16 * 1024 * 1024
"""A file that must be what was seen is read whole, up to here."""


class Instructions(Value, frozen=True, kw_only=True):
    """The words of one file."""

    path: Path
    text: str
    real: Path
    """Where it really lies, links followed."""
    truncated: bool = False


class UnusableInstructions(Value, frozen=True, kw_only=True):
    """The file was not used, and why."""

    why: str


def read_instructions(
    path: Path,
    *,
    within: Path | None,
    instruction_names: Collection[str],
    owners: Collection[int] | None,
    expected: str | None = None,
) -> Instructions | UnusableInstructions:
    """Read a file that may come from anybody; blocking.

    Args:
        path: The file.
        within: A link may only lead to somewhere below, or to a file of a known name, and to no file of secrets; None:
            anywhere.
        instruction_names: Names of files that are instructions wherever they lie.
        owners: Users whose file it may be; None: anybody's.
        expected: The SHA-256 of what it must hold; None: anything.
    """
    try:
        real = path.resolve(strict=True)
        why = None if within is None else _objection(real, within.resolve(), instruction_names)
        if why is not None:
            return UnusableInstructions(why=f"{path} was not read: it is a link to {real}, {why}")
        raw = _read(real, owners, expected)
    except (OSError, RuntimeError) as error:
        # resolve() raises RuntimeError for a loop of links before Python 3.13.
        reason = error.strerror if isinstance(error, OSError) else None
        return UnusableInstructions(why=f"{path} cannot be read: {reason or error}")
    if isinstance(raw, str):
        return UnusableInstructions(why=f"{path} was not read: {raw}")
    text = _decode(raw[:CONTEXT_BYTES])
    if text is None:
        return UnusableInstructions(why=f"{path} was not read: it is not text")
    if len(raw) <= CONTEXT_BYTES:
        return Instructions(path=path, text=text, real=real)
    whole_lines = text[: text.rfind("\n") + 1] or text
    note = f"[The rest of this file is left out: only its first {CONTEXT_BYTES} bytes are read.]"
    return Instructions(path=path, text=f"{whole_lines}\n{note}\n", real=real, truncated=True)


def _objection(real: Path, within: Path, instruction_names: Collection[str]) -> str | None:
    """Return why a link must not lead there; None: it may."""
    # A repository may bring a link to any file of the user; its words would go to the provider.
    if real.name not in instruction_names and not real.is_relative_to(within):
        return f"outside of {within}"
    return is_secret(real, roots=(within,))


def _read(real: Path, owners: Collection[int] | None, expected: str | None) -> bytes | str:
    """Return the bytes, one more than allowed when there are more, or what the file is instead."""
    # Not to wait for a writer when it is a pipe.
    handle = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return "it is no regular file"
        if owners is not None and facts.st_uid not in owners:
            return "it lies outside of the workspace and belongs to another user"
        raw = file.read((CONTEXT_BYTES if expected is None else WHOLE_BYTES) + 1)
    if expected is not None and hashlib.sha256(raw).hexdigest() != expected:
        return "it is not what was trusted any more"
    return raw


def _decode(raw: bytes) -> str | None:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    if b"\0" in raw:
        return None
    return raw.decode("utf-8-sig", "replace").replace("\r\n", "\n")
