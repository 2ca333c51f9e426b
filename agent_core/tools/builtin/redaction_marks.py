"""Keeps the marks that stand for secrets from being written over the secrets themselves."""

import re
from typing import Final

from agent_core.kernel.errors import ToolError
from agent_core.kernel.redaction.pattern_search import secret_spans

MARK: Final = re.compile(r"\[redacted:[a-z-]{1,40}\]")


def check_marks(new: str, *, before: str, path: str) -> None:
    """Refuse a text that would put a mark where a secret is now; a mark that was there already may stay.

    Raises:
        ToolError: A secret would be lost; the text says what to do.
    """
    fresh = [found[0] for found in MARK.finditer(new)]
    if not fresh or all(mark in before for mark in fresh):
        return
    if any(True for _ in secret_spans(before)):
        message = (
            f"Nothing was written: {fresh[0]} stands for a secret that is in {path} and that you are not shown; writing "
            "it would lose the secret. Use edit on the lines around it and leave the secret where it is."
        )
        raise ToolError(message)
