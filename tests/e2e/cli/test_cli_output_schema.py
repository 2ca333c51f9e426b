"""`--output-schema`: the final answer is JSON that fits a schema; an answer that does not is corrected in the session."""

import json

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.terminal import tiller
from tests.support.session.session_files import checked_entries, said

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
RUN_WAYS = BOTH_WAYS

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "sides": {"type": "integer"}},
    "required": ["name", "sides"],
    "additionalProperties": False,
}
SQUARE = '{"name": "square", "sides": 4}'
OPTION = ("--output-schema", "schema.json")


@pytest.fixture(autouse=True)
def schema(ground: Ground) -> None:
    _ = ground.file("schema.json", json.dumps(SCHEMA))


@pytest.mark.parametrize(
    "answer",
    [SQUARE, f"```json\n{SQUARE}\n```", f"\n```\n{SQUARE}```\n"],
    ids=["plain", "json", "fence"],
)
def test_an_answer_that_fits_is_printed_as_json_alone(ground: Ground, answer: str) -> None:
    _ = ground.file("shape.py", "SIDES = 4\n")
    ground.provider.script([calls(("read", {"path": "shape.py"}), text="I look."), says(answer)])
    ran = tiller(ground, "run", *OPTION, "-o", "answer.json", "Describe the shape.")
    assert (ran.code, ran.out) == (0, f"{SQUARE}\n")
    assert (ground.root / "answer.json").read_text("utf-8") == f"{SQUARE}\n"
    (prompt,) = said(checked_entries(*ground.sessions()))
    assert prompt.startswith("Describe the shape.")
    assert json.dumps(SCHEMA, separators=(",", ":")) in json.dumps(
        ground.provider.requests[0]
    ).replace('\\"', '"')


def test_an_answer_that_does_not_fit_is_corrected_in_the_same_session(ground: Ground) -> None:
    ground.provider.script([says("It is a square."), says('{"name": 4}'), says(SQUARE)])
    ran = tiller(ground, "run", "--json", *OPTION, "Describe the shape.")
    assert (ran.code, ran.err) == (0, "")
    types = [line["type"] for line in ran.lines]
    assert (types.count("session"), types.count("result"), types.count("run.ended")) == (1, 1, 3)
    assert (ran.lines[-1]["type"], ran.lines[-1]["text"]) == ("result", SQUARE)
    _, first, second = said(checked_entries(*ground.sessions()))
    assert "it is not JSON" in first
    assert "$.name: 4 is not of type 'string'" in second
    assert "$: 'sides' is a required property" in second


def test_after_two_corrections_the_command_fails(ground: Ground) -> None:
    ground.provider.script([{**says("[]"), "repeat": -1}])
    ran = tiller(ground, "run", *OPTION, "Describe the shape.")
    assert (ran.code, ran.out, len(ground.provider.requests)) == (1, "", 3)
    assert ran.err.splitlines()[-1] == (
        "tiller run: the final answer does not fit --output-schema, also after 2 corrections: $: [] is not of type 'object'"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "is not JSON: "),
        ("[]", "is no JSON schema: its outermost value must be an object"),
        ('{"type": "shape"}', "is no JSON schema: 'shape' is not valid"),
    ],
    ids=["missing", "no JSON", "no object", "no schema"],
)
def test_a_file_that_is_no_schema_ends_the_command_before_anything_starts(
    ground: Ground, text: str | None, message: str
) -> None:
    if text is not None:
        _ = ground.file("other.json", text)
    ran = tiller(ground, "run", "--output-schema", "other.json", "hello")
    assert (ran.code, ran.out, ground.provider.requests) == (2, "", [])
    assert ran.err.startswith(f"tiller run: --output-schema 'other.json' {message}")


def test_a_plan_that_is_carried_out_has_no_answer_for_a_schema(ground: Ground) -> None:
    ran = tiller(ground, "run", *OPTION, "--continue", "--approve-plan", "0123")
    assert (ran.code, ground.provider.requests) == (2, [])
    assert "--output-schema needs a prompt" in ran.err
