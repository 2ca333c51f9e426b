"""Arguments are forgiven what can be understood, and refused with words that teach."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import pytest
from pydantic import Field

from agent_core.kernel.errors import ArgumentsInvalid
from agent_core.tools.arguments import (
    ArgumentCount,
    ArgumentSeconds,
    ToolArguments,
    dumped,
    schema_of,
    validated,
)
from agent_core.tools.builtin import builtin_tools


class Inner(ToolArguments):
    """A part."""

    word: str


class Example(ToolArguments):
    """All kinds of fields."""

    other_names: ClassVar[Mapping[str, str]] = {"name": "text"}

    text: str = Field(description="Some words")
    count: ArgumentCount | None = Field(default=None, description="How many")
    share: ArgumentSeconds | None = None
    names: list[str] | None = None
    parts: list[Inner] = Field(default_factory=list[Inner])
    one: Inner | None = None
    exact: bool = False


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"text": "a"}, {"text": "a"}),
        ({"text": "a", "count": "42"}, {"text": "a", "count": 42}),
        ({"text": "a", "count": 2.0}, {"text": "a", "count": 2}),
        ({"text": "a", "share": "0.5"}, {"text": "a", "share": 0.5}),
        ({"text": "a", "names": "x"}, {"text": "a", "names": ["x"]}),
        ({"text": "a", "names": '["x", "y"]'}, {"text": "a", "names": ["x", "y"]}),
        ({"text": "a", "parts": {"word": "w"}}, {"text": "a", "parts": [{"word": "w"}]}),
        ({"text": "a", "parts": '{"word": "w"}'}, {"text": "a", "parts": [{"word": "w"}]}),
        ({"text": "a", "one": '{"word": "w"}'}, {"text": "a", "one": {"word": "w"}}),
        ({"text": "a", "count": None, "names": None}, {"text": "a"}),
        ({"text": "a", "exact": "true"}, {"text": "a", "exact": True}),
        ({"text": "a", "extra": [1]}, {"text": "a"}),
        ({"name": "a"}, {"text": "a"}),
        ({"name": "other", "text": "a"}, {"text": "a"}),
        ({"text": '["a"]'}, {"text": '["a"]'}),
    ],
)
def test_what_can_be_understood_is(given, expected) -> None:
    assert dumped(validated("example", Example, given)) == expected


def test_what_was_checked_passes_again() -> None:
    once = dumped(
        validated("example", Example, {"text": "a", "count": "1", "parts": '{"word":"w"}'})
    )
    assert dumped(validated("example", Example, once)) == once


def test_every_problem_is_listed_and_what_came_is_shown() -> None:
    given = {"text": None, "count": "many", "parts": [{"word": "w"}, {}, 7], "names": 3}
    with pytest.raises(ArgumentsInvalid) as refused:
        validated("example", Example, given)
    assert str(refused.value) == (
        'Validation failed for tool "example":\n'
        "  - text: Input should be a valid string\n"
        "  - count: Input should be a valid integer, unable to parse string as an integer\n"
        "  - names.0: Input should be a valid string\n"
        "  - parts.1.word: Field required\n"
        "  - parts.2: Input should be an object\n"
        "\n"
        "Received arguments:\n"
        '{\n  "text": null,\n  "count": "many",\n  "parts": [\n    {\n      "word": "w"\n    },\n'
        '    {},\n    7\n  ],\n  "names": 3\n}'
    )


def test_long_arguments_are_not_sent_back() -> None:
    given = {"text": 1, "content": "x" * 1_000_000, "names": ["y" * 1_000] * 1_000}
    with pytest.raises(ArgumentsInvalid) as refused:
        validated("example", Example, given)
    assert len(str(refused.value)) < 5_000
    assert "… (1000000 characters)" in str(refused.value)


def test_many_problems_are_counted() -> None:
    with pytest.raises(ArgumentsInvalid, match="and 80 more"):
        validated("example", Example, {"text": "a", "parts": [{}] * 100})


def test_the_schema_is_plain() -> None:
    assert schema_of(Example) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Some words"},
            "count": {"type": "integer", "minimum": 1, "description": "How many"},
            "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 2147483.647},
            "names": {"type": "array", "items": {"type": "string"}},
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}},
                    "required": ["word"],
                },
            },
            "one": {
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
            },
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["text"],
    }


def test_the_tools_have_the_names_that_models_know() -> None:
    shapes = {
        tool.spec.name: (
            list(cast("Mapping[str, Any]", tool.spec.parameters["properties"])),
            tool.spec.parameters.get("required", []),
            tool.spec.kind,
            tool.spec.parallel_safe,
        )
        for tool in builtin_tools()
    }
    assert shapes == {
        "read": (["path", "offset", "limit"], ["path"], "read", True),
        "write": (["path", "content"], ["path", "content"], "edit", False),
        "edit": (["path", "edits"], ["path", "edits"], "edit", False),
        "bash": (["command", "timeout", "background", "needs"], ["command"], "execute", False),
        "grep": (
            ["pattern", "path", "glob", "ignoreCase", "literal", "context", "limit"],
            ["pattern"],
            "read",
            True,
        ),
        "find": (["pattern", "path", "limit"], ["pattern"], "read", True),
        "ls": (["path", "limit"], [], "read", True),
        "todo": (["items"], ["items"], "read", False),
        "ask": (["questions"], ["questions"], "read", False),
        "background": (["action", "id", "offset", "waitS"], ["action"], "read", False),
        "fetch": (["url"], ["url"], "other", True),
        "web_search": (["query", "count"], ["query"], "other", True),
        "plan": (["markdown", "steps"], ["markdown"], "read", False),
        "task": (
            [
                "description",
                "prompt",
                "preset",
                "model",
                "background",
                "isolation",
                "budget",
            ],
            ["description", "prompt"],
            "read",
            True,
        ),
        "task_result": (["ids", "waitS"], [], "read", True),
        "task_list": ([], [], "read", True),
        "task_stop": (["id"], ["id"], "read", True),
    }


def test_the_public_schemas_hold_no_references_and_no_null() -> None:
    for tool in builtin_tools():
        assert not {"$ref", "$defs", "title", "null", "anyOf"} & set(_words(tool.spec.parameters))


def _words(value):
    match value:
        case dict():
            for name, item in value.items():
                yield name
                yield from _words(item)
        case list():
            for item in value:
                yield from _words(item)
        case str():
            yield value
        case _:
            pass
