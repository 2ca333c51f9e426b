"""Clients, files and code written for a recorded version are served by this one."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.corpora import EACH, VERSIONS, numbers, read
from tests.compatibility.interface_breaks import interface_breaks, public_interface
from tests.compatibility.record import formats
from tests.compatibility.schema_breaks import bare, document_breaks, protocol_breaks
from tiller_server import VERSION
from tiller_server.lsp.wire.schema import build

PARAMS = "ConfigureParams"


def test_a_version_is_recorded_and_none_is_later_than_this_one() -> None:
    assert VERSIONS
    assert numbers(VERSIONS[-1].name) <= numbers(VERSION)


@EACH
def test_clients_of_a_recorded_version_are_served(recorded: Path) -> None:
    assert protocol_breaks(read(recorded, "wire"), bare(build())) == []


@EACH
def test_code_for_a_recorded_version_finds_what_it_uses(recorded: Path) -> None:
    assert interface_breaks(read(recorded, "interface"), public_interface()) == []


@EACH
def test_files_of_a_recorded_version_are_valid_and_reports_are_understood(recorded: Path) -> None:
    now = formats()
    found = {
        name: document_breaks(schema, now[name], side="writes" if name == "review" else "reads")
        for name, schema in read(recorded, "formats").items()
    }
    assert {name: breaks for name, breaks in found.items() if breaks} == {}


def _removed(wire: Any) -> None:
    del wire["methods"]["agent/session/fork"]


def _required(wire: Any) -> None:
    wire["$defs"][PARAMS]["required"].append("session")


def _renamed(wire: Any) -> None:
    properties = wire["$defs"][PARAMS]["properties"]
    properties["name"] = properties.pop("session")


def _narrowed(wire: Any) -> None:
    wire["$defs"][PARAMS]["properties"]["session"] = {"type": "string", "enum": ["s1"]}


def _optional(wire: Any) -> None:
    wire["$defs"]["EventsFrame"]["required"].remove("epoch")


def _retyped(wire: Any) -> None:
    wire["$defs"]["EventsFrame"]["properties"]["epoch"] = {"type": "integer"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_removed, "agent/session/fork is gone"),
        (_required, "agent/session/configure params.session is required now"),
        (_renamed, "agent/session/configure params.session is gone"),
        (_narrowed, "the value 'others' is no longer accepted"),
        (_optional, "agent/events.epoch may be missing now"),
        (_retyped, "the type was ['string'] and is ['integer']"),
    ],
)
def test_a_break_of_the_protocol_is_found(change: Any, sentence: str) -> None:
    wire = bare(build())
    changed = copy.deepcopy(wire)
    change(changed)
    found = protocol_breaks(wire, changed)
    assert any(sentence in one for one in found), found


def test_what_is_added_to_the_protocol_is_no_break() -> None:
    wire = bare(build())
    changed = copy.deepcopy(wire)
    changed["methods"]["agent/new"] = changed["methods"]["agent/session/fork"]
    changed["$defs"][PARAMS]["properties"]["more"] = {"type": "string"}
    changed["$defs"]["EventsFrame"]["properties"]["more"] = {"type": "string"}
    assert protocol_breaks(wire, changed) == []
    assert protocol_breaks(changed, wire)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ([], "f(a) is gone"),
        ([("a", "keyword_only", False)], "f was called with ['a'] by place"),
        (
            [("a", "positional_or_keyword", False), ("b", "keyword_only", True)],
            "f(b) is required now",
        ),
        ([("a", "positional_or_keyword", False), ("b", "keyword_only", False)], None),
    ],
)
def test_a_break_of_a_function_is_found(
    parameters: list[tuple[str, str, bool]], sentence: str | None
) -> None:
    def interface(*given: tuple[str, str, bool]) -> Any:
        made = [
            {"name": name, "passed": passed, "required": needs} for name, passed, needs in given
        ]
        return {"f": {"kind": "function", "parameters": made}}

    old = interface(("a", "positional_or_keyword", False))
    found = interface_breaks(old, interface(*parameters))
    assert (sentence in found) if sentence else found == []
    assert interface_breaks(old, {}) == ["f is gone"]
