"""Reads from a repository's configuration the few settings that only say how its files are stored. Pure.

Nothing else of the configuration reaches git: the values that pass are written anew, and none of them names a program,
a file or another place.
"""

import re
from collections.abc import Mapping
from typing import Final

BOOLEAN: Final = re.compile(r"true|false|yes|no|on|off|1|0", re.IGNORECASE)
BRANCH: Final = r"[A-Za-z0-9_][\w./+-]*"

SETTINGS: Final[Mapping[str, re.Pattern[str]]] = {
    "core.repositoryformatversion": re.compile("[01]"),
    "core.filemode": BOOLEAN,
    "core.symlinks": BOOLEAN,
    "core.ignorecase": BOOLEAN,
    "core.precomposeunicode": BOOLEAN,
    "core.trustctime": BOOLEAN,
    "core.checkstat": re.compile("default|minimal", re.IGNORECASE),
    "core.sparsecheckout": BOOLEAN,
    "core.sparsecheckoutcone": BOOLEAN,
    "core.autocrlf": re.compile(f"{BOOLEAN.pattern}|input", re.IGNORECASE),
    "core.eol": re.compile("lf|crlf|native", re.IGNORECASE),
    "extensions.objectformat": re.compile("sha1|sha256"),
}
"""Names to the values that pass."""
TRACKING: Final = (
    (re.compile(r"branch\.([^\"\\\x00-\x1f]+)\.remote"), re.compile(r"[A-Za-z0-9_][\w.-]*")),
    (re.compile(r"branch\.([^\"\\\x00-\x1f]+)\.merge"), re.compile(f"refs/heads/{BRANCH}")),
    (
        re.compile(r"remote\.([^\"\\\x00-\x1f]+)\.fetch"),
        re.compile(r"\+?refs/[\w./+*-]+:refs/[\w./+*-]+"),
    ),
)
"""Patterns of the names and values of settings that `@{upstream}` needs."""
_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\]')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*(.*)")


def read_values(text: str) -> Mapping[str, str]:
    """Return all plain settings of a configuration by name, sections and keys in lower case; the last one counts.

    A line that is not plain, as one with a comment behind its value, is skipped: safety does not depend on the settings
    that are read, but on those that are passed on.
    """
    found: dict[str, str] = {}
    section = ""
    for raw in text.split("\n"):
        line = raw.strip(" \t\r")
        if begun := _SECTION.fullmatch(line):
            inner = "" if begun[2] is None else "." + re.sub(r"\\(.)", r"\1", begun[2])
            section = begun[1].lower() + inner
        elif line.startswith("["):
            section = ""
        elif section and (key := _KEY.fullmatch(line)):
            found[f"{section}.{key[1].lower()}"] = _unquoted(key[2])
    return found


def passed_on(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return those settings that git may have."""
    return {name: value for name, value in values.items() if _passes(name, value)}


def written(values: Mapping[str, str]) -> str:
    """Return a configuration with these values, and with what holds in every one that we write."""
    lines = ["[core]", "\tbare = false", "\tlogAllRefUpdates = false"]
    for name, value in sorted(values.items()):
        section, _, key = name.rpartition(".")
        top, dot, inner = section.partition(".")
        head = f"{top} {_quoted(inner)}" if dot else top
        lines += [f"[{head}]", f"\t{key} = {_quoted(value)}"]
    return "\n".join(lines) + "\n"


def _passes(name: str, value: str) -> bool:
    allowed = SETTINGS.get(name)
    if allowed is not None:
        return allowed.fullmatch(value) is not None
    return any(names.fullmatch(name) and values.fullmatch(value) for names, values in TRACKING)


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
