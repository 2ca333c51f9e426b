"""The schemas that are shipped are those of the code, and say yes and no as it does."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_core.assembly.config_schemas import NAMES, schemas, shipped, stale
from agent_core.kernel.json import as_object, decode


def test_what_is_shipped_is_what_the_code_says() -> None:
    assert stale() == {}, "run: python -m agent_core.assembly.config_schemas"
    assert tuple(schemas()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_schema_and_tells_what_every_key_is_for(name: str) -> None:
    schema: Any = as_object(decode(shipped(name)))
    Draft202012Validator.check_schema(schema)
    assert schema["title"]


@pytest.mark.parametrize(
    ("name", "document", "fits"),
    [
        ("settings", {"$schema": "x", "theme": "dark", "retry": {"maxRetries": 1}}, True),
        ("settings", {"retry": {"maxRetries": "one"}}, False),
        ("settings", {"skills": ["~/mine", "!old-*"], "extensionConflicts": "first"}, True),
        ("settings", {"permission": {"mode": "YOLO"}}, False),
        ("models", {"providers": {"lab": {"baseUrl": "http://x", "models": [{"id": "m"}]}}}, True),
        ("models", {"providers": {"lab": {"models": [{"name": "m"}]}}}, False),
        ("models", {"providers": []}, False),
    ],
)
def test_it_takes_what_is_right_and_nothing_else(name: str, document: Any, fits: bool) -> None:
    schema: Any = decode(shipped(name))
    assert Draft202012Validator(schema).is_valid(document) is fits
