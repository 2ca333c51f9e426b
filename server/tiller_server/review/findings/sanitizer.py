"""Makes what a model wrote fit for a report that others will read on a web page: pure."""

import re
from typing import Final

from agent_core.kernel.text import one_line, shown

TITLE_CHARS: Final = 120
MESSAGE_CHARS: Final = 4_000
EVIDENCE_CHARS: Final = 2_000
COMMENT: Final = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
"""A comment of HTML could pass for a mark of ours, by which posted comments are known again."""
IMAGE: Final = re.compile(r"!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
"""A picture is fetched from wherever its address says, with whatever stands in that address."""
TAG: Final = re.compile(r"<(?=[/a-zA-Z!?])")
CODE: Final = re.compile(r"(```.*?(?:```|$)|`[^`\n]*`)", re.DOTALL)


def title_of(text: str) -> str:
    """Return a title: one line without marks of HTML."""
    line = one_line(COMMENT.sub("", text)).strip().rstrip(".")
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"


def markdown_of(text: str) -> str:
    """Return Markdown without pictures, HTML and hidden signs; code in it stays as it is."""
    whole = shown(COMMENT.sub("", text)).strip()
    if len(whole) > MESSAGE_CHARS:
        whole = f"{whole[:MESSAGE_CHARS]} […]"
    pieces = CODE.split(whole)
    return "".join(
        piece if number % 2 else TAG.sub("&lt;", IMAGE.sub(r"\1", piece))
        for number, piece in enumerate(pieces)
    )


def evidence_of(text: str) -> str:
    """Return a quote, cut to a length that a report bears."""
    quote = shown(text.strip("\r\n"))
    return quote if len(quote) <= EVIDENCE_CHARS else f"{quote[:EVIDENCE_CHARS]} […]"
