"""Makes a model's Markdown harmless where it is posted: it can neither command the host, nor call people, nor fetch. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agent_core.kernel.text import one_line, shown

FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
LANGUAGE: Final = re.compile(r"[ \t]*(?!suggestion)([\w+#.-]+)(?=[ \t]|$)")
CODE: Final = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
TICK: Final = re.compile(r"(?<!\\)((?:\\\\)*)`")
COMMAND: Final = re.compile(r"^(\s*(?:[-*+]\s+|>\s*|\d+[.)]\s+)*)/(?=[A-Za-z_])")
# Where a line begins for any host or bot: those in JavaScript know more line ends than "\n".
LINE_IN_CODE: Final = r"(?:^|(?<=[\r\u2028\u2029]))([ \t]*(?:[-*+][ \t]+|>[ \t]*|\d+[.)][ \t]+)*)"
COMMAND_IN_CODE: Final = re.compile(LINE_IN_CODE + r"/(?=[A-Za-z_][\w-]*(?![\w/-]))", re.MULTILINE)
BOT_IN_CODE: Final = re.compile(
    LINE_IN_CODE + r"@(?=[\w-]+(?:\[bot\])?[:,]?[ \t]+[\w/!])", re.MULTILINE
)
PATH_IN_CODE: Final = re.compile(r"(?:^|(?<=[\r\u2028\u2029]))(?=/[A-Za-z_])", re.MULTILINE)
MENTION: Final = re.compile(r"(?<![\w/])@(?=[\w-])")
NO_LINK: Final = "\u2060"
"""A word joiner: shows nothing and keeps `@name` from calling anybody."""


def harmless(text: str) -> str:
    """Return Markdown of a model without commands, mentions, images and HTML; code stays as it is but for commands.

    GitLab runs lines that begin with `/merge` or `/approve` with the rights of the account that posts them. Older
    GitLab and bots on GitHub do so in code, too: they read the text, not the Markdown. An image is fetched when a page is
    opened, which tells its address to a server of somebody's. Open fences are closed, so that what follows is not taken
    for code, and fences begin at the margin, so that no list around them ends them earlier.
    """
    return "\n".join(_lines(shown(text).replace("\r\n", "\n")))


def harmless_line(text: str) -> str:
    """Return a title: `harmless`, on one line."""
    return _outside_code(one_line(text))


def harmless_cell(text: str) -> str:
    """Return a line for a table."""
    return harmless_line(text).replace("|", "\\|")


def fenced(text: str, *, language: str = "") -> str:
    """Return text as a fenced code block that its content cannot close; possible commands in it are escaped."""
    text = _inert_code(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text if text.endswith("\n") or not text else text + "\n"
    return f"{fence}{language}\n{body}{fence}"


def holds_commands(text: str) -> bool:
    """Return whether `fenced` changes a text, so that it cannot be offered to be taken over as it is."""
    return _inert_code(text) != text


def inline_code(text: str) -> str:
    """Return a name as code that nothing in it can end."""
    name = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", name)), default=0)
    if not longest:
        return f"`{name}`"
    ticks = "`" * (longest + 1)
    return f"{ticks} {name} {ticks}"


def _lines(text: str) -> Iterator[str]:
    fence = ""
    plain: list[str] = []
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            yield _inert_code(line)
            if found is not None and _ends(fence, found):
                fence = ""
        elif found is not None and not (found[1].startswith("`") and "`" in found[2]):
            yield from _outside_fences(plain)
            plain = []
            fence = found[1]
            # A suggestion of a model's own could be taken over with one press, and was never checked.
            language = LANGUAGE.match(found[2])
            yield fence + (language[1] if language else "")
        else:
            plain.append(line)
    yield from _outside_fences(plain)
    if fence:
        yield fence


def _ends(fence: str, found: re.Match[str]) -> bool:
    return found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip(" \t")


def _inert_code(code: str) -> str:
    """Return code in which no line is a command: escaped where it would be one, indented where it begins with a path."""
    code = COMMAND_IN_CODE.sub(r"\1\\/", code)
    code = BOT_IN_CODE.sub(rf"\1@{NO_LINK}", code)
    return PATH_IN_CODE.sub(" ", code)


def _outside_fences(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        text = _outside_code("\n".join(lines))
        yield from (COMMAND.sub(r"\1\\/", line) for line in text.split("\n"))


def _outside_code(text: str) -> str:
    parts: list[str] = []
    end = 0
    for code in CODE.finditer(text):
        # A tick that opens nothing in its line would pair with one of this code, and leave the code outside.
        before = TICK.sub(r"\1\\`", text[end : code.start()])
        # A bar ends a cell of a table, also in code.
        parts += [_plain(before), _plain(code[0]) if "|" in code[0] else code[0]]
        end = code.end()
    parts.append(_plain(text[end:]))
    return "".join(parts)


def _plain(text: str) -> str:
    text = text.replace("<", "&lt;").replace("![", "!\\[")
    return MENTION.sub(f"@{NO_LINK}", text)
