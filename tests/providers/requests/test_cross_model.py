"""A conversation that one model began, of whatever API, can be gone on with by every other."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelRequest, WireApi
from tests.providers.replay import ask, load_cases, pool, replay_server, replayed
from tests.providers.requests.conversations import TOOLS
from tests.providers.requests.targets import TARGETS, Target, sent
from tests.providers.requests.validator import Body, judged, validator_python
from tests.support.harness.shared import shared_path
from tests.support.harness.sizes import at_size

pytestmark = [
    pytest.mark.timeout(at_size(ci=240, campaign=900)),
    pytest.mark.usefixtures("may_take_long"),
]

ANSWERS_IN_ONE = 5
CONVERSATIONS = at_size(ci=2, campaign=1_000)
"""For each API at most."""
PICTURE = Image(mime="image/png", data="aWs=")


@pytest.fixture(scope="module")
def python(request: pytest.FixtureRequest) -> Path:
    # Without the reference data there is nothing to judge with.
    shared_path("tools", "validate_request.py")
    return validator_python(request.config)


async def recorded_answers(folder: Path) -> dict[WireApi, list[AssistantMessage]]:
    """Give what the adapters made of recorded traffic."""
    answers: dict[WireApi, list[AssistantMessage]] = defaultdict(list)
    connections = pool()
    try:
        with replay_server(folder) as server:
            for case in load_cases(folder):
                if len(answers[case.api]) >= CONVERSATIONS * ANSWERS_IN_ONE or case.status >= 400:
                    continue
                outcome = await ask(replayed(server, case, "glue", connections))
                if outcome.message is not None:
                    answers[case.api].append(outcome.message)
    finally:
        await connections.aclose()
    return answers


def conversation(answers: Sequence[AssistantMessage]) -> list[Message]:
    """Put answers into one conversation; the last call of one in three got no result."""
    messages: list[Message] = []
    for number, answer in enumerate(answers):
        messages += [UserMessage(content=(Text(text="go on"), PICTURE), at_ms=0), answer]
        calls = answer.tool_calls
        for call in calls[:-1] if number % 3 == 2 else calls:
            shown = (Text(text="done"), PICTURE) if number % 2 else (Text(text="done"),)
            messages.append(
                ToolResultMessage(call_id=call.id, tool_name=call.name, content=shown, at_ms=0)
            )
    return [*messages, UserMessage(content=(Text(text="and now?"),), at_ms=0)]


def as_if_from(target: Target, messages: Sequence[Message]) -> list[Message]:
    """Make answers the asked model's own, so that thoughts and signatures go back to it.

    Of Chat Completions there are many dialects: there, only what the same provider answered.
    """
    facts = target.model_facts()
    return [
        replace(message, provider=facts.provider, model=facts.id)
        if isinstance(message, AssistantMessage)
        and (facts.api != "openai-completions" or message.provider == target.dialect)
        else message
        for message in messages
    ]


async def test_every_model_goes_on_with_what_any_other_began(python: Path):
    folder = shared_path()
    asked: list[tuple[WireApi, Target]] = []
    bodies: list[Body] = []
    for api, answers in (await recorded_answers(folder)).items():
        starts = range(0, len(answers), ANSWERS_IN_ONE)
        for begun in (conversation(answers[start : start + ANSWERS_IN_ONE]) for start in starts):
            for target in TARGETS:
                facts = target.model_facts()
                own = [as_if_from(target, begun)] if api == target.api else []
                for messages in (begun, *own):
                    request = ModelRequest(
                        system="Be brief.",
                        messages=tuple(messages),
                        tools=TOOLS,
                        thinking="high",
                    )
                    asked.append((api, target))
                    bodies.append(await sent(target, facts, request))
    assert {(api, target.api) for api, target in asked} == {
        (one, other.api) for one in {api for api, _ in asked} for other in TARGETS
    }
    verdicts = judged(python, shared_path("tools", "validate_request.py"), bodies)
    wrong = [
        (api, target.name, errors)
        for (api, target), errors in zip(asked, verdicts, strict=True)
        if errors
    ]
    refused = Counter((api, name) for api, name, _ in wrong)
    for (api, name), count in sorted(Counter((api, each.name) for api, each in asked).items()):
        print(f"{api:24} -> {name:20} {count:4} bodies {refused[api, name]:3} refused")
    assert wrong == []
