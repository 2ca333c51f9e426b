"""Makes a model's Markdown harmless where it is posted: it can neither command the host, nor call people, nor fetch. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from agent_core.kernel.visible import one_line, shown

FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
CODE: Final = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
COMMAND: Final = re.compile(r"^(\s*(?:[-*+>]\s+|\d+[.)]\s+)*)/(?=[A-Za-z_])")
MENTION: Final = re.compile(r"(?<![\w/])@(?=[\w-])")
NO_LINK: Final = "\u2060"
"""A word joiner: shows nothing and keeps `@name` from calling anybody."""


def harmless(text: str) -> str:
    """Give Markdown of a model's without commands, mentions, images and HTML; code stays as it is.

    GitLab runs lines that begin with `/merge` or `/approve` with the rights of whoever posts them. An image is
    fetched when a page is opened, which tells its address to a server of somebody's. Open fences are closed, so
    that what follows is not taken for code.
    """
    return "\n".join(_lines(shown(text).replace("\r\n", "\n")))


def harmless_line(text: str) -> str:
    """Give a title: `harmless`, on one line."""
    return _outside_code(one_line(text))


def harmless_cell(text: str) -> str:
    """Give a line for a table."""
    return harmless_line(text).replace("|", "\\|")


def fenced(text: str, *, language: str = "") -> str:
    """Give text as a block of code that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{body}{fence}"


def inline_code(text: str) -> str:
    """Give a name as code that nothing in it can end."""
    name = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", name)), default=0)
    if not longest:
        return f"`{name}`"
    ticks = "`" * (longest + 1)
    return f"{ticks} {name} {ticks}"


def _lines(text: str) -> Iterator[str]:
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            yield line
            if found is not None and _ends(fence, found):
                fence = ""
        elif found is not None and not (found[1].startswith("`") and "`" in found[2]):
            fence = found[1]
            # A suggestion of a model's own could be taken over with one press, and was never checked.
            yield found[1] + re.sub(r"^\s*suggestion\S*", "", found[2])
        else:
            yield COMMAND.sub(r"\1\\/", _outside_code(line))
    if fence:
        yield fence


def _ends(fence: str, found: re.Match[str]) -> bool:
    return found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip()


def _outside_code(line: str) -> str:
    parts: list[str] = []
    end = 0
    for code in CODE.finditer(line):
        parts += [_plain(line[end : code.start()]), code[0]]
        end = code.end()
    parts.append(_plain(line[end:]))
    return "".join(parts)


def _plain(text: str) -> str:
    text = text.replace("<", "&lt;").replace("![", "!\\[")
    return MENTION.sub(f"@{NO_LINK}", text)
