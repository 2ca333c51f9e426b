"""The bottom lines of a terminal show what a call is about while the model writes it, and nothing of it stays."""

import io
import re

from agent_core.events import (
    Event,
    EventEnvelope,
    RunStarted,
    ToolInputDelta,
    ToolRunning,
    ToolStarted,
)
from agent_core.kernel import ItemId, JsonObject, RunId, ToolCallId
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions
from tiller_server.cli.terminal.status_area import ERASE_LINE, StatusArea
from tiller_server.cli.terminal.status_line import StatusLine

RUN, ITEM = RunId("r"), ItemId("i")
SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A view on a terminal of 80 columns, and what its bottom lines are."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        screen = StatusArea(self.out, size=lambda: (80, 24))
        self.view = LiveView(
            screen=screen,
            status=StatusLine(now_s=lambda: 0.0),
            markdown=LiveMarkdown(screen, colour=False),
            shape=LiveViewOptions(colour=False),
        )
        self.see(RunStarted(run=RUN, message_id=None, model="lab/m"))

    def see(self, event: Event) -> list[str]:
        self.view.see(EventEnvelope(seq=1, first=1, at_ms=0, event=event))
        self.view.tick()
        drawn = self.out.getvalue().rpartition(ERASE_LINE)[2]
        return SEQUENCES.sub("", drawn).split("\n")

    def call(self, name: str) -> None:
        _ = self.see(
            ToolStarted(run=RUN, turn=None, item=ITEM, call=ToolCallId("c"), name=name, title=name)
        )

    def grows(self, partial: JsonObject) -> list[str]:
        return self.see(ToolInputDelta(run=RUN, turn=None, item=ITEM, text="", partial=partial))


def test_path_new_line_and_command_are_shown_while_they_grow_and_nothing_stays() -> None:
    terminal = Terminal()
    assert terminal.view.shows_partials
    terminal.call("write")
    assert terminal.grows({"path": "src/main.py"}) == ["⠋ preparing write src/main.py · 0 s"]
    lines = terminal.grows({"path": "src/main.py", "content": f"import os\n{'y' * 200}\n\n"})
    assert lines == [f"  + {'y' * 74}…", "⠋ preparing write src/main.py · 0 s"]
    terminal.call("edit")
    edits: list[JsonObject] = [{"oldText": "a", "newText": "b"}, {"oldText": "one\ntwo \x1b[2J"}]
    assert terminal.grows({"path": "a.py", "edits": edits})[0] == "  - two <U+001B>[2J"
    edits[1] = {**edits[1], "newText": "three"}
    assert terminal.grows({"path": "a.py", "edits": edits})[0] == "  + three"
    terminal.call("bash")
    assert terminal.grows({"command": "npm test"}) == ["⠋ preparing $ npm test · 0 s"]
    two_lines = terminal.grows({"command": "npm test &&\n  npm run"})
    assert two_lines == ["  npm run", "⠋ preparing $ npm test && npm run · 0 s"]
    running = ToolRunning(run=RUN, turn=None, item=ITEM, title="$ npm test", input={})
    assert terminal.see(running) == ["⠋ $ npm test · 0 s"]
    terminal.view.close()
    assert "\n" not in SEQUENCES.sub("", terminal.out.getvalue().rpartition("$ npm test")[2])
