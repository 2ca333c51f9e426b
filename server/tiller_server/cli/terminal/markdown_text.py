"""Writes Markdown as a terminal shows it: headings, lists, tables and coloured code, as plain text with colours."""

import io
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from typing_extensions import override

if TYPE_CHECKING:
    from rich.markdown import Markdown

WIDEST: Final = 120
"""Lines that are longer are hard to read, however wide the window is."""
CODE_THEME: Final = "ansi_dark"
"""Of the terminal's own colours, so that it suits a light one too."""

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
STYLES: Final[Mapping[str, str]] = {"markdown.code": "cyan", "markdown.code_block": "none"}


def rendered(markdown: str, *, columns: int, colour: bool) -> list[str]:
    """Return the lines that show a piece of Markdown, none wider than the window.

    The caller makes control characters visible before (`shown`), so that the text holds no terminal escape sequence.
    """
    from rich.console import Console  # noqa: PLC0415 - 100 ms that a pipe does not need
    from rich.theme import Theme  # noqa: PLC0415 - see above

    into = io.StringIO()
    console = Console(
        file=into,
        width=max(min(columns, WIDEST), 1),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        theme=Theme(dict(STYLES)),
        _environ={},
    )
    console.print(_markdown()(markdown, code_theme=CODE_THEME, hyperlinks=False))
    lines = [line.rstrip(" ") for line in into.getvalue().split("\n")]
    shown = [place for place, line in enumerate(lines) if _COLOUR.sub("", line).strip()]
    return lines[shown[0] : shown[-1] + 1] if shown else []


@cache
def _markdown() -> "type[Markdown]":
    """Make the class once: code without a frame, so that it can be copied and goes on after a cut."""
    from rich.console import Console, ConsoleOptions, RenderResult  # noqa: PLC0415 - see above
    from rich.markdown import CodeBlock, Heading, Markdown  # noqa: PLC0415 - see above
    from rich.syntax import Syntax  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    class PlainCode(CodeBlock):
        @override
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            code = str(self.text).rstrip()
            yield Syntax(
                code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default"
            )

    class LeftHeading(Heading):
        @override
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            text = self.text.copy()
            text.justify = "left"
            text.style = "bold underline" if self.tag == "h1" else "bold"
            yield Text.assemble(text)

    class OurMarkdown(Markdown):
        elements = {  # noqa: RUF012 - the library's own way
            **Markdown.elements,
            "fence": PlainCode,
            "code_block": PlainCode,
            "heading_open": LeftHeading,
        }

    return OurMarkdown
