"""Results of checks of this machine, and their output."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agent_core.kernel import JsonValue
from agent_core.kernel.json import encode
from agent_core.kernel.values import Value

MARKS: Final[Mapping[str, str]] = {"ok": "ok", "note": "note", "missing": "MISSING"}
WIDTH: Final = 17

CheckStatus = Literal["ok", "note", "missing"]


class Check(Value, frozen=True, kw_only=True):
    """One line of what was found."""

    name: str
    status: CheckStatus
    """`note`: works, and something should be known; `missing`: something does not work."""
    found: str
    advice: str | None = None
    """Next step for the user; None when there is none."""


def checks_text(found: Sequence[Check]) -> str:
    """Return checks as lines for a terminal, with their number at the end."""
    lines: list[str] = []
    for check in found:
        lines.append(f"{MARKS[check.status]:<8}{check.name:<{WIDTH}}{check.found}")
        if check.advice:
            lines.append(f"{'':<8}{'':<{WIDTH}}→ {check.advice}")
    missing = sum(check.status == "missing" for check in found)
    notes = sum(check.status == "note" for check in found)
    lines.append(f"{missing} of {len(found)} do not work, {notes} should be known")
    return "".join(f"{line}\n" for line in lines)


def checks_json(found: Sequence[Check]) -> str:
    """Return checks as one line of JSON."""
    rows: list[JsonValue] = [
        {
            "name": check.name,
            "status": check.status,
            "found": check.found,
            "advice": check.advice,
        }
        for check in found
    ]
    return encode({"checks": rows}).decode() + "\n"
