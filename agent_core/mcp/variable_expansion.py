"""Expansion of environment variables in an `mcp.json`: `${NAME}` and `${NAME:-otherwise}`. Pure."""

import re
from collections.abc import Callable
from typing import Final

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Unfit(ValueError):
    """An entry cannot be used; the text says why."""


def expanded(text: str, look_up: Callable[[str], str | None]) -> str:
    """Replace the variables of a text.

    Raises:
        Unfit: One is not set and says nothing of what to take then.
    """

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        set_to = look_up(name)
        if set_to:
            return set_to
        if otherwise is None and set_to is None:
            message = f"the variable {name} is not set; set it, or write ${{{name}:-otherwise}}"
            raise Unfit(message)
        return otherwise or ""

    return VARIABLE.sub(value, text)
