"""A model's text as Markdown on a terminal: finished blocks stay, the block that is being written is redrawn."""

from collections.abc import Sequence

from agent_core.kernel.text import shown
from tiller_server.cli.terminal.markdown_blocks import Blocks
from tiller_server.cli.terminal.markdown_text import rendered
from tiller_server.cli.terminal.status_area import Surface

BOTTOM_LINES = 3
"""Lines of the window that stay free below the block that is being written."""
FLOOD_CHARS = 32_768
"""So many at once come faster than they can be set as Markdown, and than anybody reads: they are shown as they are."""


class LiveMarkdown:
    """The words of one answer after another."""

    def __init__(self, screen: Surface, *, colour: bool) -> None:
        self._screen = screen
        self._colour = colour
        self._blocks = Blocks()
        self._drawn = ("", 0)
        self._tail: Sequence[str] = ()
        self.streamed: set[str] = set()
        """The items whose words have come already."""

    def append(self, text: str) -> list[str]:
        """Append text; return the blocks that are complete now, each as lines to show."""
        blocks = self._blocks.feed(shown(text))
        if len(text) > FLOOD_CHARS:
            return [f"{block}\n" for block in blocks]
        return [self._lines(block) for block in blocks]

    def end(self) -> list[str]:
        """Return what is left."""
        self._tail = ()
        return [self._lines(block) for block in self._blocks.finish()]

    def tail(self) -> Sequence[str]:
        """Return the lines of what is being written, as many as there is room for."""
        text, columns = self._blocks.tail, self._screen.columns
        if self._drawn != (text, columns):
            self._drawn = (text, columns)
            self._tail = rendered(text, columns=columns, colour=self._colour)
        room = max(self._screen.lines - BOTTOM_LINES, 0)
        return self._tail[-room:] if room else ()

    def _lines(self, block: str) -> str:
        lines = rendered(block, columns=self._screen.columns, colour=self._colour)
        return "".join(f"{line}\n" for line in lines)
