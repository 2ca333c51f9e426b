"""The Responses API: what is read of the items of a stream, and the quirks of those who speak it."""

import json
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from agent_core.providers import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStart
from tests.providers.wire.responses_events import (
    arguments,
    ended,
    item,
    read,
    said,
    sent_back,
    summary,
    whole,
    words,
)
from tests.support.provider.asked import read_request
from tests.support.provider.script import read_script
from tests.support.provider.shapes import render


def test_words_come_with_their_message_and_its_phase():
    message, parts = read(
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
        item("message", id="msg_1", phase="final_answer", content=[]),
        words("Hel"),
        words("lo"),
        whole("message", id="msg_1", phase="final_answer", content=said("Hello")),
        ended(),
    )
    assert message == AssistantMessage(
        content=(Text(text="Hello", signature='{"v":1,"id":"msg_1","phase":"final_answer"}'),),
        api="openai-responses",
        provider="lab",
        model="m",
        stop_reason="stop",
        usage=Usage(input=5, output=5, cache_read=4, cache_write=1, reasoning=3),
        raw_stop_reason="completed",
        response_id="resp_1",
        at_ms=message.at_ms,
    )
    assert parts == [TextDelta(text="Hello")]
    assert sent_back(message) == [
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": said("Hello"),
            "phase": "final_answer",
        }
    ]


def test_calls_that_come_by_turns_are_told_apart():
    message, parts = read(
        item("function_call", 0, id="fc_1", call_id="c1", name="read", arguments=""),
        item("function_call", 1, id="fc_2", call_id="c2", name="ls", arguments=""),
        arguments('{"pa', 0, item_id="fc_1"),
        arguments("{", 1, item_id="fc_2"),
        arguments('th":"a"}', 0, item_id="fc_1"),
        arguments("}", 1, item_id="fc_2"),
        whole("function_call", 1, id="fc_2", call_id="c2", name="ls", arguments="{}"),
        whole("function_call", 0, id="fc_1", call_id="c1", name="read", arguments='{"path":"a"}'),
        ended(),
    )
    assert message.stop_reason == "tool_use"
    assert message.tool_calls == (
        ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "a"}, signature="fc_1"),
        ToolCall(id=ToolCallId("c2"), name="ls", arguments={}, signature="fc_2"),
    )
    assert parts == [
        ToolCallStart(index=0, name="read", id="c1"),
        ToolCallStart(index=1, name="ls", id="c2"),
        ToolCallDelta(index=0, text='{"pa'),
        ToolCallDelta(index=1, text="{"),
        ToolCallDelta(index=0, text='th":"a"}'),
        ToolCallDelta(index=1, text="}"),
    ]


def test_an_item_that_gets_a_new_id_with_every_event_is_known_by_its_index():
    message, _ = read(
        item("function_call", 0, id="a", call_id="c1", name="read", arguments=""),
        item("function_call", 1, id="b", call_id="c2", name="ls", arguments=""),
        arguments("{}", 0, item_id="c"),
        arguments("{}", 1, item_id="d"),
        whole("function_call", 0, id="e", call_id="c1", name="read", arguments="{}"),
        whole("function_call", 1, id="f", call_id="c2", name="ls", arguments="{}"),
        ended(),
    )
    assert [(call.id, call.name) for call in message.tool_calls] == [("c1", "read"), ("c2", "ls")]


def test_items_that_share_an_index_are_known_by_their_ids():
    message, _ = read(
        item("function_call", 0, id="fc_1", call_id="c1", name="read", arguments=""),
        item("function_call", 0, id="fc_2", call_id="c2", name="ls", arguments=""),
        arguments('{"a":1}', 0, item_id="fc_1"),
        arguments('{"a":2}', 0, item_id="fc_2"),
        whole("function_call", 0, id="fc_1", call_id="c1", name="read", arguments='{"a":1}'),
        whole("function_call", 0, id="fc_2", call_id="c2", name="ls", arguments='{"a":2}'),
        ended(),
    )
    assert [call.arguments for call in message.tool_calls] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(
            {
                "type": "response.function_call_arguments.done",
                "output_index": 0,
                "arguments": '{"a":1}',
            },
            id="with their own end",
        ),
        pytest.param(
            whole("function_call", id="fc_1", call_id="c1", name="ls", arguments='{"a":1}'),
            id="with the item",
        ),
        pytest.param({"type": "response.in_progress"}, id="with the response"),
    ],
)
def test_arguments_that_come_only_at_the_end_are_read(last: dict[str, Any]):
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "ls",
        "arguments": '{"a":1}',
    }
    message, parts = read(
        item("function_call", id="fc_1", call_id="c1", name="ls", arguments=""),
        last,
        ended(output=[call]),
    )
    assert [call.arguments for call in message.tool_calls] == [{"a": 1}]
    assert parts == [
        ToolCallStart(index=0, name="ls", id="c1"),
        ToolCallDelta(index=0, text='{"a":1}'),
    ]


def test_what_is_run_is_what_the_provider_says_was_meant_in_the_end():
    message, _ = read(
        item("function_call", id="fc_1", call_id="c1", name="ls", arguments=""),
        arguments('{"a":1', 0),
        whole("function_call", id="fc_1", call_id="c1", name="ls", arguments='{"b":2}'),
        ended(),
    )
    assert [call.arguments for call in message.tool_calls] == [{"b": 2}]


def test_pieces_whose_item_was_never_begun_are_read():
    message, _ = read(words("Hello", item_id="msg_1"), ended())
    assert message.text == "Hello"


def test_an_answer_that_comes_only_with_the_end_is_read_once():
    output = [{"type": "message", "id": "msg_1", "content": said("Hello")}]
    message, parts = read(ended(output=output))
    assert (message.text, parts) == ("Hello", [TextDelta(text="Hello")])
    message, _ = read(words("Hello", item_id="tmp"), ended(output=output))
    assert message.text == "Hello"


def test_the_parts_of_a_thought_are_paragraphs_and_its_item_goes_back_whole():
    paragraphs = [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]
    message, parts = read(
        item("reasoning", id="rs_1", summary=[]),
        summary("On", 0),
        summary("e.", 0),
        summary("Two.", 1),
        whole("reasoning", id="rs_1", summary=paragraphs, encrypted_content="gAAA", status="x"),
        item("function_call", 1, id="fc_1", call_id="c1", name="ls", arguments=""),
        whole("function_call", 1, id="fc_1", call_id="c1", name="ls", arguments="{}"),
        ended(),
    )
    assert parts[0] == ThinkingDelta(text="One.\n\nTwo.")
    thought = message.content[0]
    assert isinstance(thought, Thinking)
    assert thought.text == "One.\n\nTwo."
    assert sent_back(message) == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": paragraphs,
            "encrypted_content": "gAAA",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "ls",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "c1", "output": "No result provided"},
    ]


def test_raw_thoughts_are_read_and_go_back():
    content = [{"type": "reasoning_text", "text": "hm"}]
    message, parts = read(
        item("reasoning", id="rs_1", summary=[], content=[]),
        {
            "type": "response.reasoning_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "hm",
        },
        whole("reasoning", id="rs_1", summary=[], content=content),
        item("message", 1, id="m", content=[]),
        words("ok", 1),
        whole("message", 1, id="m", content=said("ok")),
        ended(),
    )
    assert parts == [ThinkingDelta(text="hm"), TextDelta(text="ok")]
    assert sent_back(message) == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": content},
        {"role": "assistant", "content": "ok"},
    ]


def test_a_thought_whose_encrypted_form_comes_only_with_the_end_goes_back():
    encrypted = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    message, _ = read(
        item("reasoning", id="rs_1", summary=[]),
        whole("reasoning", id="rs_1", summary=[]),
        words("ok", 1),
        ended(output=[encrypted]),
    )
    assert sent_back(message) == [encrypted, {"role": "assistant", "content": "ok"}]


def test_a_refusal_in_words_is_shown():
    message, parts = read(
        item("message", id="msg_1", content=[]),
        {"type": "response.refusal.delta", "output_index": 0, "delta": "I can't."},
        whole("message", id="msg_1", content=[{"type": "refusal", "refusal": "I can't."}]),
        ended(),
    )
    assert (message.text, parts) == ("I can't.", [TextDelta(text="I can't.")])


def test_a_call_with_plain_text_as_input_is_read_and_goes_back():
    event = {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "ls "}
    message, _ = read(
        item("custom_tool_call", id="ctc_1", call_id="c1", name="bash", input=""),
        event,
        {**event, "type": "response.custom_tool_call_input.done", "input": "ls -l"},
        whole("custom_tool_call", id="ctc_1", call_id="c1", name="bash", input="ls -l"),
        ended(),
    )
    assert [call.arguments for call in message.tool_calls] == [{"input": "ls -l"}]
    call, result = sent_back(message)
    assert call == {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "c1",
        "name": "bash",
        "input": "ls -l",
    }
    assert result["type"] == "custom_tool_call_output"


def test_items_of_no_use_to_an_agent_are_passed_over():
    message, _ = read(
        item("web_search_call", 0, id="ws_1"),
        whole("web_search_call", 0, id="ws_1", action={"type": "search"}),
        {"type": "response.web_search_call.completed", "item_id": "ws_1"},
        {"type": "keepalive"},
        words("ok", 1),
        ended(),
    )
    assert message.content == (Text(text="ok"),)


def test_the_scripted_provider_speaks_this_api() -> None:
    source = [{"deltas": 3, "tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}]
    (turn,) = read_script(source)
    asked = read_request({"model": "m", "input": []}, api="responses", number=1, size=40)
    events = [
        json.loads(line[6:])
        for event in render(turn, asked)
        for line in event.raw.splitlines()
        if line.startswith(b"data: ")
    ]
    message, _ = read(*events)
    assert message.text == "word word word "
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("read", {"path": "a"})]
    assert [event["type"] for event in events].count("response.output_text.delta") == 3
