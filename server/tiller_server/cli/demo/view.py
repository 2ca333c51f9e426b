"""Shows the demo's events, as an editor would get them, on a terminal."""

from typing import Any, Final

from tiller_server.cli.terminal.run_renderer import MARKS, TextOutput

BOLD: Final = "1"
DIM: Final = "2"
ADDED: Final = "32"
REMOVED: Final = "31"
PREVIEW: Final = 100


class DemoView:
    """Prints one event at a time."""

    def __init__(self, out: TextOutput, *, colour: bool) -> None:
        self._out = out
        self._colour = colour
        self._at_line_start = True
        self._titles: dict[str, str] = {}

    def head(self, text: str) -> None:
        """Print a heading."""
        self._break()
        self._write(f"\n{self._styled(text, BOLD)}\n")

    def plain(self, text: str) -> None:
        """Print text; lines of a diff get their colours."""
        for line in text.splitlines(keepends=True):
            style = {"+": ADDED, "-": REMOVED}.get(line[:1])
            body = line.rstrip("\n")
            self._write(f"{self._styled(body, style) if style else body}\n")

    def see(self, event: dict[str, Any]) -> None:
        """Print an event of the wire."""
        match event["type"]:
            case "message.delta":
                self._write(event["text"])
            case "message.ended" if event["role"] == "assistant":
                self._break()
            case "tool.running":
                self._titles[event["item"]] = event["title"]
                self._line(f"▸ {event['title']}")
            case "tool.ended":
                self._line(f"  {MARKS[event['status']]} {_line_of(event)[:PREVIEW]}")
            case "edit.applied":
                names = ", ".join(one["uri"].rsplit("/", 1)[-1] for one in event["documents"])
                self._line(f"  ✎ edit verified in {names}")
            case "run.ended" if event.get("error"):
                self._line(f"{event['error']['kind']}: {event['error']['message']}")
            case "notice":
                self._line(event["text"])
            case _:
                pass

    def _line(self, text: str) -> None:
        self._break()
        self._write(f"{self._styled(text, DIM)}\n")

    def _break(self) -> None:
        if not self._at_line_start:
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            _ = self._out.write(text)
            _ = self._out.flush()
            self._at_line_start = text.endswith("\n")

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour else text


def _line_of(event: dict[str, Any]) -> str:
    """Choose the line of a tool's output that says most: the first of a success, the last of a failure."""
    text = next((part["text"] for part in event["content"] if part["type"] == "text"), "")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "no output"
    return lines[0] if event["status"] == "ok" and event["name"] != "bash" else lines[-1]
