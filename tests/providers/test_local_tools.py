"""Tools for the model of this machine: a schema that its answer must fit, and calls made of the answer."""

import json
from typing import Any

import pytest

from agent_core.providers.adapters.local.grammar import answer_schema, local_body, plain_schema
from agent_core.providers.adapters.local.rewriting import Rewriter

READ = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Which."}},
    "required": ["path"],
    "additionalProperties": False,
}


def chunk(content: str | None, reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
    return {"id": "chatcmpl-1", "choices": [choice]}


def rewritten(text: str, reason: str = "stop", *, size: int = 1) -> list[dict[str, Any]]:
    rewriter = Rewriter()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [chunk(piece) for piece in pieces] + [chunk(None, reason)]
    made: list[Any] = [made for one in chunks for made in rewriter.chunks(one)]
    return [one["choices"][0] for one in made]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_words_come_as_they_grow(size: int) -> None:
    made = rewritten('{"say": "Grüße, \\"du\\" \\ud83e\\udd9c\\n"}', size=size)
    said = "".join(one["delta"].get("content", "") for one in made)
    assert said == 'Grüße, "du" 🦜\n'
    assert made[-1]["finish_reason"] == "stop"


def called(made: list[dict[str, Any]]) -> tuple[str, str, int]:
    """Give the name, the arguments and the number of pieces of the only call."""
    deltas = [one["delta"]["tool_calls"][0] for one in made if "tool_calls" in one["delta"]]
    assert [one["id"] for one in deltas if "id" in one] == ["call_chatcmpl-1"]
    arguments = "".join(one["function"]["arguments"] for one in deltas)
    return deltas[0]["function"]["name"], arguments, len(deltas)


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a b"},
        {},
        {"path": "{}}"},
        {"a": {"b": {}}, "c": [{}]},
        {"arguments": '"arguments": 1'},
    ],
    ids=str,
)
def test_a_call_comes_as_it_grows_and_ends_the_answer(arguments: Any, size: int) -> None:
    text = json.dumps({"tool": "read", "arguments": arguments}, indent=1 if size == 4 else None)
    made = rewritten(text, size=size)
    name, sent, pieces = called(made)
    assert (name, json.loads(sent)) == ("read", arguments)
    assert pieces > 3 or size > 1 or not arguments
    assert made[-1]["finish_reason"] == "tool_calls"


def test_a_call_that_was_cut_off_stays_cut() -> None:
    made = rewritten('{"tool": "read", "arguments": {"path": "a', reason="length")
    assert called(made)[:2] == ("read", '{"path": "a')
    assert made[-1]["finish_reason"] == "length"


def test_usage_goes_through() -> None:
    usage = {"id": "x", "choices": [], "usage": {"prompt_tokens": 3}}
    assert list(Rewriter().chunks(usage)) == [usage]


def test_tools_become_a_schema_and_the_past_becomes_words() -> None:
    function = {"name": "read", "description": "Read.\nMore.", "parameters": READ}
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path":"x"}'},
    }
    made = local_body(
        {
            "model": "m",
            "stream": True,
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "auto",
            "messages": [
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "text"},
            ],
        }
    )
    assert (made["stream"], "tools" in made, "tool_choice" in made) == (True, False, False)
    messages: Any = made["messages"]
    assert messages[0]["content"].endswith("- read(path): Read.")
    assert messages[1:] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": '{"tool": "read", "arguments": {"path":"x"}}'},
        {"role": "user", "content": "Result: text"},
    ]
    form: Any = made["response_format"]
    assert form["json_schema"]["schema"] == answer_schema([function])
    assert len(form["json_schema"]["schema"]["anyOf"]) == 2
    plain = local_body({"model": "m", "messages": []})
    assert plain == {"model": "m", "messages": [], "temperature": 0}


def test_a_schema_keeps_only_what_the_runtime_understands() -> None:
    schema = {
        "type": "object",
        "title": "T",
        "properties": {
            "a": {"type": "string", "pattern": "x", "format": "uri", "description": "d"},
            "b": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            "c": {"anyOf": [{"type": "null"}, {"enum": ["x"]}], "default": None},
        },
    }
    assert plain_schema(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            "c": {"anyOf": [{"type": "null"}, {"enum": ["x"]}]},
        },
        "required": [],
        "additionalProperties": False,
    }
