"""Whatever a conversation holds, the body that is sent is one that the provider's own types accept."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent_core.kernel import JsonObject
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Image,
    Message,
    Text,
)
from agent_core.providers import ModelInfo, ModelRequest, ToolDeclaration
from tests.providers.requests.conversations import TOOLS, made_up_request
from tests.providers.requests.targets import TARGETS, Target, sent
from tests.providers.requests.validator import Body, judged, validator_python
from tests.support.harness.shared import shared_path
from tests.support.harness.sizes import at_size

pytestmark = [
    pytest.mark.timeout(at_size(ci=240, campaign=900)),
    pytest.mark.usefixtures("may_take_long"),
]

CONVERSATIONS = at_size(ci=25, campaign=200)
"""For each kind of model."""
NESTED: JsonObject = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "What to change.",
            "items": {
                "type": "object",
                "properties": {
                    "old": {"type": "string"},
                    "new": {"type": "string"},
                    "mode": {"type": "string", "enum": ["once", "all"]},
                    "count": {"type": "integer", "minimum": 1, "maximum": 9},
                },
                "required": ["old", "new"],
            },
        },
        "when": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "dry": {"type": "boolean", "default": False},
    },
    "required": ["edits"],
}
EDIT = ToolDeclaration(name="edit", description="Changes a file.", parameters=NESTED)


def conversation(seed: int, target: Target) -> tuple[ModelInfo, ModelRequest]:
    """Make a conversation up, with every kind of message, and a model to ask."""
    random = Random(seed)  # noqa: S311 - a test that can be repeated
    facts = target.model_facts(reasoning=random.random() < 0.7, images=random.random() < 0.7)
    request = made_up_request(seed, facts, target.signs)
    messages = [
        replace(message, stop_reason="aborted")
        if isinstance(message, AssistantMessage) and random.random() < 0.05
        else message
        for message in request.messages
    ]
    for _ in range(random.randint(0, 3)):
        messages.insert(random.randint(0, len(messages)), other(random))
    tools = (*TOOLS, EDIT) if request.tools else ()
    system = random.choice((request.system, "Be brief.\n\n<project>\nä 🙂 \ud83d\n</project>"))
    return facts, replace(
        request,
        system=system,
        messages=tuple(messages),
        tools=tools,
        session=random.choice((None, "s1")),
        cache=random.choice(("none", "short", "long")),
    )


def other(random: Random) -> Message:
    """Give a message of a kind that only a transcript knows."""
    picture = Image(mime="image/png", data="aWs=")
    return random.choice(
        (
            BashMessage(command="ls", output="a\n", exit_code=0, at_ms=0),
            BashMessage(command="x", output="", exit_code=1, exclude_from_context=True, at_ms=0),
            CustomMessage(custom_type="note", content=(Text(text="a note"), picture), at_ms=0),
            CustomMessage(custom_type="note", content=(), at_ms=0),
            CompactionSummaryMessage(summary="before", tokens_before=9, at_ms=0),
            BranchSummaryMessage(summary="elsewhere", from_id="e1", at_ms=0),
        )
    )


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    # Without the reference data there is nothing to judge with.
    shared_path("tools", "validate_request.py")
    return validator_python(request.config)


async def test_every_body_passes_the_vendors_types_and_their_unwritten_rules(python: Path):
    tool = shared_path("tools", "validate_request.py")
    asked: list[tuple[Target, int]] = []
    bodies: list[Body] = []
    for number, target in enumerate(TARGETS):
        for count in range(CONVERSATIONS):
            seed = number * 100_000 + count
            facts, request = conversation(seed, target)
            asked.append((target, seed))
            bodies.append(await sent(target, facts, request))
    wrong = [
        (target.name, seed, errors)
        for (target, seed), errors in zip(asked, judged(python, tool, bodies), strict=True)
        if errors
    ]
    refused = Counter(name for name, *_ in wrong)
    for target in TARGETS:
        print(f"{target.name:20} {CONVERSATIONS:4} bodies {refused[target.name]:3} refused")
    assert wrong == []


def test_the_judge_refuses_what_is_wrong(python: Path):
    """A judge that lets everything pass would show nothing."""
    tool = shared_path("tools", "validate_request.py")
    bad = {
        "openai-chat": b'{"model":"m","messages":[{"role":"robot","content":"a"}]}',
        "anthropic-messages": b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":7}]}',
        "openai-responses": b'{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"b"}]}',
        "mistral-chat": b'{"model":"m","messages":[],"nonsense":1}',
        "gemini": b'{"contents":[{"role":"user","parts":[]}]}',
        "bedrock-converse-stream": b'{"messages":[{"role":"user","content":[{"txt":"a"}]}]}',
        "vertex-raw": b'{"max_tokens":1}',
        "groq-chat": b'{"model":"m","messages":[{"role":"user","content":"a","robot":1}]}',
    }
    bodies = [Body(api=api, raw=raw, model="m") for api, raw in bad.items()]
    assert [bool(errors) for errors in judged(python, tool, bodies)] == [True] * len(bad)
