"""What is generated from the vocabulary is up to date, whole, and says what the shapes accept."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.events.codec import NAMES
from tiller_server.lsp.wire.errors import ERROR_KINDS
from tiller_server.lsp.wire.events import EVENTS
from tiller_server.lsp.wire.methods import METHODS
from tiller_server.lsp.wire.schema import PROTOCOL_PAGE, SCHEMA_FILE, build, main, stale, text
from tiller_server.lsp.wire.subscription import FRAMES
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
    assert _bare(prompt["properties"]["session"]) == {"type": "string"}
    assert _bare(prompt["properties"]["content"]) == {
        "items": {"$ref": "#/$defs/Block"},
        "maxItems": 1000,
        "minItems": 1,
        "type": "array",
    }
    assert _bare(document["$defs"]["ConfigChange"]["properties"]["budgets"]) == {
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
    assert _bare(document["$defs"]["SessionInfo"]["properties"]["title"]) == {"type": "string"}


def test_the_docstring_of_a_field_is_its_description_also_when_it_is_inherited(
    document: dict,
) -> None:
    definitions = document["$defs"]
    session = definitions["PromptParams"]["properties"]["session"]
    assert session["description"].startswith("Session id.")
    assert "description" in definitions["ForkedSession"]["properties"]["parent"]


def test_every_field_of_params_and_results_is_described(document: dict) -> None:
    shapes = [
        shape
        for method in document["methods"].values()
        for part in ("params", "result")
        for shape in _shapes(method.get(part, {}), document["$defs"])
    ]
    assert len(shapes) > len(METHODS)
    undescribed = [
        f"{name}.{field}"
        for name, shape in shapes
        for field, each in shape.get("properties", {}).items()
        if "description" not in each
    ]
    assert undescribed == []


def test_an_empty_page_becomes_the_markers_and_filling_twice_changes_nothing(built: dict) -> None:
    once = fill("", built)
    assert fill(once, built) == once
    assert "| [`agent/prompt`](#agentprompt) | request |" in once
    assert "<!-- method agent/prompt:begin -->\n\nClient → server, request." in once
    assert "| `run.ended` |" in once
    assert "| `SessionNotFound` |" in once


def test_text_around_the_markers_stays(built: dict) -> None:
    page = re.sub(
        r"(<!-- (.+):begin -->).*?(<!-- \2:end -->)",
        r"before \2\n\1\nold\n\3\nafter \2",
        fill("", built),
        flags=re.DOTALL,
    )
    filled = fill(page, built)
    for name in ("methods", "method agent/prompt", "events", "errors", "types"):
        assert f"before {name}\n" in filled
        assert f"\nafter {name}" in filled
    assert "\nold\n" not in filled


def test_a_page_without_its_markers_is_refused(built: dict) -> None:
    with pytest.raises(
        ValueError, match=r"must have '<!-- .+:begin -->' and its end once, found 0"
    ):
        fill("# A page\n", built)
    with pytest.raises(ValueError, match="method agent/prompt:begin"):
        fill(fill("", built).replace("method agent/prompt:", "prompt:"), built)


def test_the_block_of_a_method_that_does_not_exist_is_refused(built: dict) -> None:
    page = fill("", built) + "<!-- method agent/old:begin -->\n<!-- method agent/old:end -->\n"
    with pytest.raises(ValueError, match="there is no such method"):
        fill(page, built)


def test_a_changed_shape_changes_the_block_of_its_method(built: dict) -> None:
    page = fill("", built)
    changed = copy.deepcopy(built)
    changed["$defs"]["CompactParams"]["properties"]["instructions"]["description"] = "Other words."
    assert fill(page, changed) != page
    assert fill(fill(page, changed), built) == page


def test_an_event_of_no_group_is_refused(built: dict) -> None:
    changed = copy.deepcopy(built)
    changed["events"]["odd.one"] = changed["events"]["notice"]
    with pytest.raises(ValueError, match=r"odd\.one"):
        fill("", changed)


def test_every_event_that_the_core_emits_is_in_the_table() -> None:
    assert set(NAMES.values()) - set(EVENTS) == set()


def test_the_schema_is_shipped_beside_the_code() -> None:
    assert SCHEMA_FILE.parent == Path(build.__code__.co_filename).parent


def _bare(schema: dict) -> dict:
    """Return a schema without its description."""
    return {key: value for key, value in schema.items() if key != "description"}


def _shapes(schema: dict, definitions: dict) -> Iterator[tuple[str, dict]]:
    for one in schema.get("anyOf", [schema]):
        name = one.get("$ref", "").removeprefix("#/$defs/")
        if name:
            yield name, definitions[name]


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
