"""Output of commands in a terminal: in its colours, and with nothing else that a terminal would obey."""

from agent_core.events import ToolEnded
from agent_core.kernel import JsonValue
from agent_core.kernel.ids import ItemId, RunId, ToolCallId
from agent_core.messages import Text
from tiller_server.cli.terminal.run_renderer import DIM
from tiller_server.cli.terminal.tool_outputs import (
    ToolOutputs,
    color_spans,
    line_styles,
    painted,
)


def test_a_text_is_painted_line_by_line_and_the_rest_is_written_out() -> None:
    text = "\U0001f642 one\ntwo \x1b[2J end"
    spans = color_spans({"colors": [[3, 10, "1;31"]]})
    assert painted(text, spans) == (
        "\U0001f642 \x1b[1;31mone\x1b[0m\n\x1b[1;31mtwo\x1b[0m <U+001B>[2J end"
    )
    assert painted(text, ()) == "\U0001f642 one\ntwo <U+001B>[2J end"


def test_colours_that_are_none_are_left_out() -> None:
    wrong: list[JsonValue] = [
        None, {}, {"colors": 1}, {"colors": [[0, 1]]}, {"colors": [[0, 1, "31m\x1b[2J"]]},
        {"colors": [[2, 1, "31"]]}, {"colors": [[0, 5, "31"], [3, 6, "32"]]}, {"colors": ["031"]},
    ]  # fmt: skip
    assert [color_spans(one) for one in wrong] == [[]] * len(wrong)


def test_a_line_has_the_style_of_most_of_it() -> None:
    text = "FAILED here\nok and much more\n\nplain"
    assert list(line_styles(text, [(0, 6, "31"), (12, 14, "32")])) == [
        ("FAILED here", "31"),
        ("ok and much more", None),
        ("", None),
        ("plain", None),
    ]


def ended(text: str, details: JsonValue) -> ToolEnded:
    return ToolEnded(
        run=RunId("r"),
        turn=None,
        item=ItemId("i"),
        call=ToolCallId("c"),
        name="bash",
        status="error",
        content=(Text(text=text),),
        details=details,
        duration_ms=1,
    )


def test_a_command_that_failed_shows_its_end_in_its_colours() -> None:
    event = ended("\n\nred line\nplain\n", {"colors": [[2, 10, "31"]]})
    outputs = ToolOutputs(colour=True)
    assert list(outputs.keep(event, "$ make")) == [("red line", "31"), ("plain", DIM)]
    without = ToolOutputs()
    assert list(without.keep(event, "$ make")) == [("red line", DIM), ("plain", DIM)]
