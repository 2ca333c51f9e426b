"""PROTOCOL.md has a section for every method, and its examples fit the schema."""

import json
import re
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from tests.support.session.event_schema import check_event
from tiller_server.lsp.methods import (
    ACTION_KINDS,
    CLIENT_REQUESTS,
    COMMANDS,
    METHODS as SERVED,
    NOTIFICATIONS,
)
from tiller_server.lsp.wire.base import WireModel, dump
from tiller_server.lsp.wire.capabilities import AgentClientCaps, AgentOptions, AgentServerCaps
from tiller_server.lsp.wire.errors import ERROR_KINDS
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.schema import PROTOCOL_PAGE, SCHEMA_FILE
from tiller_server.lsp.wire.subscription import FRAMES
from tiller_server.lsp.wire.tables import METHOD_BLOCK

Json = dict

PAGE = PROTOCOL_PAGE.read_text(encoding="utf-8")
SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
SECTION = re.compile(r"^### `(agent/[\w/]+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ERRORS = re.compile(r"^Errors: (.*?)\n\n", re.MULTILINE | re.DOTALL)
KIND = re.compile(r"`([A-Z][A-Za-z]+)`")
SECTIONS = SECTION.findall(PAGE)
ASKED = [
    (method, text)
    for method, text in SECTIONS
    if (METHODS[method].kind, METHODS[method].direction) == ("request", "client→server")
]
EXAMPLES = [
    (method, json.loads(example)) for method, text in SECTIONS for example in EXAMPLE.findall(text)
]


def test_every_method_has_one_section() -> None:
    described = [method for method, _ in SECTIONS]
    assert sorted(described) == sorted(METHODS)
    assert {*SERVED, *NOTIFICATIONS, *CLIENT_REQUESTS} <= set(described)


@pytest.mark.parametrize(("method", "text"), SECTIONS, ids=[method for method, _ in SECTIONS])
def test_a_section_has_its_own_tables_and_an_example(method: str, text: str) -> None:
    blocks = re.findall(rf"<!-- {METHOD_BLOCK}(.+):begin -->", text)
    assert blocks == [method]
    assert EXAMPLE.search(text) is not None


@pytest.mark.parametrize(("method", "text"), ASKED, ids=[method for method, _ in ASKED])
def test_a_request_names_its_errors_by_kinds_that_exist(method: str, text: str) -> None:
    (errors,) = ERRORS.findall(text)
    assert set(KIND.findall(errors)) <= set(ERROR_KINDS), method


@pytest.mark.parametrize(
    ("method", "example"),
    EXAMPLES,
    ids=[f"{method}-{number}" for number, (method, _) in enumerate(EXAMPLES)],
)
def test_an_example_fits_the_schema_and_has_no_other_fields(method: str, example: Json) -> None:
    each = METHODS[method]
    parts = ["params", "result"] if each.kind == "request" else ["params"]
    assert list(example) == parts
    for part in parts:
        _validate(SCHEMA["methods"][method][part], example[part])
    _round_trip(TypeAdapter(each.params), example["params"])
    if each.kind == "request":
        _round_trip(TypeAdapter(cast("Any", each.result)), example["result"])


def test_the_results_of_a_prompt_have_an_example_each() -> None:
    results = [example["result"] for method, example in EXAMPLES if method == "agent/prompt"]
    assert ["accepted" in one for one in results] == [True, False]


def test_the_example_of_initialize_fits_the_schema() -> None:
    example = json.loads(EXAMPLE.findall(PAGE.partition("### initialize\n")[2])[0])
    asked, answered = example["params"], example["result"]["capabilities"]["experimental"]
    for name, model, value in (
        ("client", AgentClientCaps, asked["capabilities"]["experimental"]["agent"]),
        ("initializationOptions", AgentOptions, asked["initializationOptions"]["agent"]),
        ("server", AgentServerCaps, answered["agent"]),
    ):
        _validate(SCHEMA["capabilities"][name], value)
        assert dump(parse(model, value)) == value


def test_the_example_of_a_frame_fits_the_schema() -> None:
    example = json.loads(EXAMPLE.findall(PAGE.partition("### Frames\n")[2])[0])
    _validate(SCHEMA["frames"][example["kind"]], example)
    assert dump(parse(FRAMES[example["kind"]], example)) == example
    for event in example["events"]:
        check_event(event)
        _validate(SCHEMA["events"][event["type"]], event)


def test_an_example_of_an_error_fits_the_schema() -> None:
    section = PAGE.partition("## Errors\n")[2].partition("### Kinds of errors")[0]
    with_kind, without = (json.loads(one)["data"] for one in EXAMPLE.findall(section))
    _validate(SCHEMA["errorData"], with_kind)
    assert set(without) == {"retryable", "field"}


def test_every_example_is_json() -> None:
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) > len(METHODS)
    for example in examples:
        json.loads(example)


def test_every_command_is_in_the_page() -> None:
    assert [name for name in (*COMMANDS, *ACTION_KINDS) if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent/session/list", {"limit": "all"}),
        ("agent/session/label", {"entry": "e"}),
        ("agent/session/list", {"limits": 5}),
    ],
    ids=["type", "required", "unknown"],
)
def test_a_wrong_example_is_noticed(method: str, params: Json) -> None:
    with pytest.raises((AssertionError, ValueError)):
        _round_trip(TypeAdapter(METHODS[method].params), params)


def _validate(schema: Json, value: Json) -> None:
    whole = {**schema, "$defs": SCHEMA["$defs"]}
    errors = [error.message for error in Draft202012Validator(whole).iter_errors(value)]
    assert errors == []


def _round_trip(shape: TypeAdapter, value: object) -> None:
    """Hold a value against the shape itself, which refuses more, and notice fields that it does not have."""
    read = shape.validate_python(value, by_alias=True, by_name=False)
    assert (dump(read) if isinstance(read, WireModel) else read) == value
