"""Gemini: what is sent, on both of its servers."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.gemini.request import request_body
from agent_core.providers.wire.gemini.schema import gemini_schema
from tests.providers.replay import HELLO, LAB

NEW = replace(LAB, api="google-generative-ai", images=True, id="gemini-3-flash-preview")
OLD = replace(NEW, id="gemini-2.5-flash")
UNSIGNED = "skip_thought_signature_validator"
PICTURE = Image(mime="image/png", data="aWs=")
SHOWN = {"inlineData": {"mimeType": "image/png", "data": "aWs="}}
CALL = ToolCall(id=ToolCallId("a b"), name="read", arguments={"path": "x"}, signature="c2ln")
OTHER = ToolCall(id=ToolCallId("c"), name="ls", arguments={})
ASKED = UserMessage(content=(Text(text="look"), PICTURE, Text(text=" ")), at_ms=0)
MORE = UserMessage(content=(Text(text="closely"),), at_ms=0)
RESULTS = (
    ToolResultMessage(
        call_id=CALL.id, tool_name="read", content=(Text(text="no"),), is_error=True, at_ms=0
    ),
    ToolResultMessage(
        call_id=OTHER.id, tool_name="ls", content=(Text(text="here"), PICTURE), at_ms=0
    ),
)


def sent(request: ModelRequest, facts: ModelInfo) -> Any:
    return request_body(request, facts)


def said(model: str, *content: Any) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        api="google-generative-ai",
        provider="lab",
        model=model,
        stop_reason="tool_use",
        at_ms=0,
    )


def contents(facts: Any, *messages: Any) -> Any:
    return sent(ModelRequest(system="", messages=messages), facts)["contents"]


ANSWER = said(
    NEW.id,
    Thinking(text="hm", signature="dGg="),
    Text(text="ok"),
    Text(text=" "),
    Text(text="", signature="ZW1wdHk="),
    CALL,
    OTHER,
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def test_the_whole_request_is_in_the_apis_words():
    request = ModelRequest(
        system="S",
        messages=(ASKED, MORE, ANSWER, *RESULTS, MORE),
        tools=(ToolDeclaration(name="read", description="R", parameters=SCHEMA),),
        max_tokens=100,
    )
    assert sent(request, NEW) == {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "generationConfig": {"maxOutputTokens": 100},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "R", "parametersJsonSchema": SCHEMA}
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, SHOWN, {"text": "closely"}]},
            {
                "role": "model",
                "parts": [
                    {"thought": True, "text": "hm", "thoughtSignature": "dGg="},
                    {"text": "ok"},
                    {"text": "", "thoughtSignature": "ZW1wdHk="},
                    {
                        "functionCall": {"id": "a_b", "name": "read", "args": {"path": "x"}},
                        "thoughtSignature": "c2ln",
                    },
                    {"functionCall": {"id": "c", "name": "ls", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "a_b",
                            "name": "read",
                            "response": {"error": "no"},
                        }
                    },
                    {
                        "functionResponse": {
                            "id": "c",
                            "name": "ls",
                            "response": {"output": "here"},
                            "parts": [SHOWN],
                        }
                    },
                ],
            },
            {"role": "user", "parts": [{"text": "closely"}]},
        ],
    }


def test_an_older_model_gets_no_ids_and_pictures_behind_all_results():
    answer = said(OLD.id, CALL, OTHER)
    _, called, results, shown, _ = contents(OLD, ASKED, answer, *reversed(RESULTS), MORE)
    assert called["parts"] == [
        {
            "functionCall": {"name": "read", "args": {"path": "x"}},
            "thoughtSignature": "c2ln",
        },
        {"functionCall": {"name": "ls", "args": {}}},
    ]
    assert results["parts"] == [
        {"functionResponse": {"name": "read", "response": {"error": "no"}}},
        {"functionResponse": {"name": "ls", "response": {"output": "here"}}},
    ]
    assert shown == {"role": "user", "parts": [{"text": "Tool result image:"}, SHOWN]}


def test_a_result_without_words_says_so():
    silent = replace(RESULTS[0], content=(), is_error=False)
    pictured = replace(RESULTS[1], content=(PICTURE,))
    results = contents(OLD, ASKED, said(OLD.id, CALL, OTHER), silent, pictured)[2]["parts"]
    told = [part["functionResponse"]["response"]["output"] for part in results]
    assert told == ["(no tool output)", "(see attached image)"]


def test_a_signature_of_another_model_or_none_of_googles_does_not_go_out():
    mine = said(NEW.id, Text(text="a", signature="no base64!"), Text(text="b", signature="AAA"))
    theirs = replace(mine, model="gemini-3.1-pro", content=(Text(text="c", signature="AAAA"),))
    parts = [
        part for content in contents(NEW, ASKED, mine, ASKED, theirs) for part in content["parts"]
    ]
    assert [part for part in parts if part.get("text") in ("a", "b", "c")] == [
        {"text": "a"},
        {"text": "b"},
        {"text": "c"},
    ]


def test_a_picture_of_a_kind_that_gemini_does_not_take_is_named():
    words = UserMessage(content=(Image(mime="image/gif", data="aWs="),), at_ms=0)
    (content,) = contents(NEW, words)
    assert content["parts"] == [{"text": "(image omitted: Gemini takes no image/gif)"}]
    moving = replace(RESULTS[1], content=words.content)
    result = contents(NEW, ASKED, said(NEW.id, OTHER), moving)[2]["parts"][0]["functionResponse"]
    assert result["response"] == {"output": "(image omitted: Gemini takes no image/gif)"}
    assert "parts" not in result


def signatures(facts: Any, *messages: Any) -> list[Any]:
    return [
        part.get("thoughtSignature")
        for content in contents(facts, *messages)
        for part in content["parts"]
        if "functionCall" in part
    ]


def test_the_first_call_of_a_turn_that_was_never_signed_says_so_to_a_new_model():
    foreign = said("other", replace(CALL, signature=None), OTHER)
    assert signatures(NEW, ASKED, foreign, *RESULTS) == [UNSIGNED, None]
    assert signatures(OLD, ASKED, foreign, *RESULTS) == [None, None]
    # A turn that is over is not checked any more.
    assert signatures(NEW, ASKED, foreign, *RESULTS, MORE) == [None, None]
    assert signatures(NEW, ASKED, said(NEW.id, CALL, OTHER), *RESULTS) == ["c2ln", None]


def test_without_thoughts_no_signature_goes_out():
    request = ModelRequest(
        system="",
        messages=(ASKED, said(NEW.id, Thinking(text="hm", signature="dGg="), CALL), RESULTS[0]),
        without_thoughts=True,
    )
    text = str(sent(request, NEW))
    assert "hm" not in text
    assert "c2ln" not in text
    assert UNSIGNED in text


def test_answers_in_a_row_are_one_content_and_nothing_is_said_with_something():
    one, two = said(NEW.id, Text(text="1")), said(NEW.id, Text(text="2"))
    assert contents(NEW, ASKED, one, two)[1]["parts"] == [{"text": "1"}, {"text": "2"}]
    blank = UserMessage(content=(Text(text=" "),), at_ms=0)
    assert contents(NEW, blank) == [{"role": "user", "parts": [{"text": "<empty>"}]}]
    assert "systemInstruction" not in sent(ModelRequest(system=" ", messages=(ASKED,)), NEW)


@pytest.mark.parametrize(
    ("model", "level", "asked"),
    [
        ("gemini-3-flash-preview", "off", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-flash-preview", "medium", {"thinkingLevel": "MEDIUM"}),
        ("gemini-flash-latest", "low", {"thinkingLevel": "LOW"}),
        ("gemini-3-pro-preview", "off", {"thinkingLevel": "LOW"}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro-preview", "minimal", {"thinkingLevel": "LOW"}),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "MEDIUM"}),
        ("gemini-4-argon", "high", {"thinkingLevel": "HIGH"}),
        ("gemma-4-27b-it", "low", {"thinkingLevel": "MINIMAL"}),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", "minimal", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 32_768}),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8_192}),
        ("gemini-2.5-flash", "high", {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 512}),
        ("gemini-of-my-own", "high", {"thinkingBudget": -1}),
    ],
)
def test_thinking_is_asked_for_as_the_model_takes_it(model: str, level: Any, asked: Any):
    facts = replace(NEW, id=model, reasoning=True, max_tokens=64_000)
    wanted = asked if level == "off" else {**asked, "includeThoughts": True}
    body = sent(replace(HELLO, thinking=level), facts)
    assert body["generationConfig"]["thinkingConfig"] == wanted


def test_a_models_own_word_for_a_level_wins():
    facts = replace(NEW, reasoning=True, compat={"thinkingLevelMap": {"xhigh": "ultra"}})
    body = sent(replace(HELLO, thinking="max"), facts)
    assert body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "ULTRA"


@pytest.mark.parametrize(
    ("model", "limit", "budget"),
    [
        ("gemini-2.5-flash", 4_096, 3_072),
        ("gemini-2.5-flash", 1_000, 0),
        ("gemini-2.5-pro", 1_000, 128),
    ],
)
def test_thinking_leaves_room_for_the_answer(model: str, limit: int, budget: int):
    facts = replace(NEW, id=model, reasoning=True, max_tokens=limit)
    body = sent(replace(HELLO, thinking="high"), facts)
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == budget


def test_a_model_that_does_not_think_is_not_asked_to():
    body = sent(replace(HELLO, thinking="high"), NEW)
    assert "thinkingConfig" not in body["generationConfig"]


LEAF = {"type": "string"}


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ({}, {"type": "object", "properties": {}}),
        (
            {"$schema": "x", "type": "object", "properties": {"a": {"const": "b", "x-y": 1}}},
            {"type": "object", "properties": {"a": {"enum": ["b"]}}},
        ),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"$ref": "#/$defs/A", "description": "D"},
                    "b": {"$ref": "#/definitions/B~1x"},
                    "c": {"$ref": "other.json#/A"},
                    "d": {"$ref": "#/$defs/missing"},
                },
                "$defs": {"A": LEAF},
                "definitions": {"B/x": {"type": "array", "items": LEAF}},
            },
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "D"},
                    "b": {"type": "array", "items": LEAF},
                    "c": {"type": "object"},
                    "d": {"type": "object"},
                },
            },
        ),
        (
            {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/N"}},
                "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}},
            },
            {
                "type": "object",
                "properties": {
                    "next": {"type": "object", "properties": {"next": {"type": "object"}}}
                },
            },
        ),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"oneOf": [LEAF, {"const": 1}]},
                    "b": {"prefixItems": [LEAF], "items": False},
                    "c": {"type": ["string", "null"], "minLength": 1},
                },
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {
                    "a": {"anyOf": [LEAF, {"enum": [1]}]},
                    "b": {"prefixItems": [LEAF]},
                    "c": {"type": ["string", "null"], "minLength": 1},
                },
                "additionalProperties": False,
            },
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": LEAF}, "required": ["a"]},
                    {"properties": {"b": LEAF}, "required": ["b", "a"]},
                ],
                "additionalProperties": LEAF,
            },
            {
                "type": "object",
                "properties": {"a": LEAF, "b": LEAF},
                "required": ["a", "b"],
                "additionalProperties": LEAF,
            },
        ),
    ],
    ids=["nothing", "const", "references", "itself", "choices", "all of"],
)
def test_a_schema_has_only_what_gemini_knows(given: Any, cleaned: Any):
    assert gemini_schema(given) == cleaned


def test_definitions_that_use_one_another_twice_do_not_grow_without_end():
    definitions = {
        f"D{at}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/D{at + 1}"} for side in "ab"},
        }
        for at in range(40)
    }
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": definitions}
    assert len(str(gemini_schema(schema))) < 1_000_000
