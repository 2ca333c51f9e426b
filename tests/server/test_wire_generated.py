"""What is generated from the vocabulary is up to date, whole, and says what the shapes accept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.events.codec import NAMES
from tiller_server.lsp.wire import ERROR_KINDS, EVENTS, FRAMES, METHODS
from tiller_server.lsp.wire.schema import PROTOCOL_PAGE, SCHEMA_FILE, build, main, stale, text
from tiller_server.lsp.wire.tables import fill

# Built once for the file and once by each check; a busy machine needs seconds for it.
pytestmark = pytest.mark.timeout(90)

DUE = "run: python -m tiller_server.lsp.wire.schema"


@pytest.fixture(scope="module")
def built() -> dict:
    return build()


@pytest.fixture(scope="module")
def document() -> dict:
    return json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def test_the_shipped_schema_is_up_to_date(built: dict) -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text(built), DUE


def test_the_tables_of_the_protocol_page_are_up_to_date(built: dict) -> None:
    page = PROTOCOL_PAGE.read_text(encoding="utf-8")
    assert fill(page, built) == page, DUE
    assert stale() == {}
    assert main(["--check"]) == 0


def test_the_schema_names_everything(document: dict) -> None:
    assert set(document["methods"]) == set(METHODS)
    assert set(document["events"]) == set(EVENTS)
    assert set(document["frames"]) == set(FRAMES)
    assert document["errorKinds"] == list(ERROR_KINDS)
    assert set(document["capabilities"]) == {"client", "server", "initializationOptions"}


def test_every_reference_leads_somewhere_and_every_definition_is_used(document: dict) -> None:
    used = {ref.removeprefix("#/$defs/") for ref in _references(document)}
    assert used == set(document["$defs"])


def test_what_may_be_left_out_is_not_described_as_null(document: dict) -> None:
    prompt = document["$defs"]["PromptParams"]
    assert prompt["required"] == ["content"]
    assert prompt["properties"]["session"] == {"type": "string"}
    assert prompt["properties"]["content"] == {
        "items": {"$ref": "#/$defs/Block"},
        "maxItems": 1000,
        "minItems": 1,
        "type": "array",
    }
    assert document["$defs"]["ConfigChange"]["properties"]["budgets"] == {
        "anyOf": [{"$ref": "#/$defs/Budgets"}, {"type": "null"}],
    }
    assert document["$defs"]["TextBlock"]["required"] == ["type", "text"]
    assert document["$defs"]["Mode"] == {
        "anyOf": [
            {"enum": ["ask", "auto", "plan", "yolo"], "type": "string"},
            {"pattern": "^_", "type": "string"},
        ]
    }


def test_fields_that_are_called_title_are_kept(document: dict) -> None:
    assert document["$defs"]["SessionInfo"]["properties"]["title"] == {"type": "string"}


def test_an_empty_page_becomes_the_markers_and_filling_twice_changes_nothing(built: dict) -> None:
    once = fill("", built)
    assert fill(once, built) == once
    assert "| R | `agent/prompt` |" in once
    assert "| `run.ended` |" in once
    assert "| `SessionNotFound` |" in once


def test_words_around_the_markers_stay(built: dict) -> None:
    page = "\n".join(
        f"before {name}\n<!-- {name}:begin -->\nold\n<!-- {name}:end -->\nafter {name}"
        for name in ("methods", "events", "errors")
    )
    filled = fill(page, built)
    for name in ("methods", "events", "errors"):
        assert f"before {name}\n" in filled
        assert f"\nafter {name}" in filled
    assert "\nold\n" not in filled


def test_a_page_without_its_markers_is_refused(built: dict) -> None:
    with pytest.raises(ValueError, match="methods:begin"):
        fill("# A page\n", built)


def test_every_event_that_the_core_emits_is_in_the_table() -> None:
    assert set(NAMES.values()) - set(EVENTS) == set()


def test_the_schema_is_shipped_beside_the_code() -> None:
    assert SCHEMA_FILE.parent == Path(build.__code__.co_filename).parent


def _references(value: object) -> Iterator[str]:
    match value:
        case {"$ref": str(ref)}:
            yield ref
        case dict():
            for each in value.values():
                yield from _references(each)
        case list():
            for each in value:
                yield from _references(each)
        case _:
            return
