"""A request whose beginning was kept from the last one has the bytes that it has when all is encoded anew."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from agent_core.kernel import JsonObject, JsonValue, ToolCallId, json
from agent_core.messages import AssistantMessage, Message, Text, ToolCall, UserMessage
from agent_core.providers.adapters.openai_completions import request as chat
from agent_core.providers.messages import history as encoded_history
from agent_core.providers.messages.history import EncodedHistory, SplitBody
from agent_core.providers.model import ModelInfo, ModelRequest
from agent_core.providers.wire.anthropic import request as anthropic
from agent_core.providers.wire.responses import request as responses
from agent_core.providers.wire.responses.compat import responses_compat
from tests.providers.replay import LAB
from tests.providers.requests.conversations import Signs, made_up_request
from tests.support.harness.sizes import at_size

SEEDS = range(at_size(ci=60, campaign=3_000))
SIGNS = Signs(text=lambda _: None, thought=lambda _: "reasoning_content", call=lambda _: None)
SAME_IDS = replace(SIGNS, call_id=lambda number: f"call_{number % 3}")

Split = Callable[[ModelRequest, ModelInfo, EncodedHistory | None], SplitBody]


def responses_body(
    request: ModelRequest, facts: ModelInfo, history: EncodedHistory | None
) -> SplitBody:
    return responses.split_body(
        request, facts, history, compat=responses_compat(facts), model=facts.id
    )


CHAT = replace(LAB, api="openai-completions", images=True, reasoning=True)
MODELS: dict[str, tuple[Split, ModelInfo]] = {
    "chat": (chat.split_body, CHAT),
    "chat, text only": (chat.split_body, replace(CHAT, images=False)),
    "chat, cache marks": (
        chat.split_body,
        replace(CHAT, compat={"cacheControlFormat": "anthropic"}),
    ),
    "chat, DeepSeek": (chat.split_body, replace(CHAT, base_url="https://api.deepseek.com/v1")),
    "anthropic": (anthropic.split_body, replace(CHAT, api="anthropic-messages")),
    "responses": (responses_body, replace(CHAT, api="openai-responses")),
    "responses, text only": (responses_body, replace(CHAT, api="openai-responses", images=False)),
}


def anew(split: Split, request: ModelRequest, facts: ModelInfo) -> bytes:
    whole = split(request, facts, None)
    assert whole.encoded == b""
    return json.encode(whole.fields)


def prefixes(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    return [tuple(messages[:end]) for end in range(1, len(messages) + 1)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("signs", [SIGNS, SAME_IDS], ids=["own ids", "the same ids"])
def test_a_growing_conversation_has_the_same_bytes(name: str, signs: Signs):
    split, facts = MODELS[name]
    kept = 0
    for seed in SEEDS:
        request, history = made_up_request(seed, facts, signs), EncodedHistory()
        for messages in prefixes(request.messages):
            grown = replace(request, messages=messages)
            body = split(grown, facts, history)
            assert body.encode() == anew(split, grown, facts)
            kept += len(body.encoded) > 0
    assert kept > len(SEEDS)


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_conversation_has_the_same_bytes(name: str):
    """Compacted, edited, on another branch, with other tools, instructions, or without thoughts: in any order."""
    split, facts = MODELS[name]
    for seed in SEEDS:
        random, history = Random(seed), EncodedHistory()  # noqa: S311 - the same each time
        requests = [made_up_request(seed * 7 + number, facts, SIGNS) for number in range(3)]
        for _ in range(12):
            request = random.choice(requests)
            messages = list(random.choice(prefixes(request.messages)))
            place = random.randrange(len(messages))
            match random.choice(("same", "same", "edited", "removed", "equal", "cut")):
                case "edited":
                    messages[place] = replace(messages[place], at_ms=7)
                case "removed":
                    del messages[place]
                case "equal":
                    messages[place] = replace(messages[place])
                case "cut":
                    del messages[:place]
                case _:
                    pass
            changed = replace(
                request,
                messages=tuple(messages),
                system=random.choice(("", "Be brief.")),
                without_thoughts=random.random() < 0.2,
                cache=random.choice(("none", "short", "long")),
            )
            assert split(changed, facts, history).encode() == anew(split, changed, facts)


def answer(**arguments: JsonValue) -> AssistantMessage:
    call = ToolCall(id=ToolCallId("c1"), name="run", arguments=arguments)
    return AssistantMessage(
        content=(Text(text="so"), call),
        api="a",
        provider="p",
        model="m",
        stop_reason="tool_use",
        at_ms=0,
    )


def user(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),), at_ms=0)


def test_arguments_that_python_calls_equal_are_not_confused():
    history = EncodedHistory()
    for value in (1, True, 1.0):
        messages = (user("a"), answer(flag=value), user("b"), answer(flag=value), user("c"))
        request = ModelRequest(system="", messages=messages)
        body = chat.split_body(request, CHAT, history)
        assert body.encode() == anew(chat.split_body, request, CHAT)


def test_half_a_character_in_an_old_message_is_replaced_as_before():
    history = EncodedHistory()
    messages: tuple[Message, ...] = (user("half \ud83d"), answer(), user("whole"))
    for _ in range(3):
        request = ModelRequest(system="s", messages=messages)
        body = chat.split_body(request, CHAT, history)
        assert body.encode() == anew(chat.split_body, request, CHAT)
        messages = (*messages, answer(path="\udc00"), user("more"))


def test_an_old_message_is_converted_once():
    """Counts the turns that are converted for the request of each of many turns."""
    history, converted = EncodedHistory(), [0]

    def convert(turns: Sequence[object]) -> list[JsonObject]:
        converted[-1] += len(turns)
        return [{} for _ in turns]

    messages: tuple[Message, ...] = (user("first"),)
    for _ in range(50):
        request = ModelRequest(system="", messages=messages)
        history.split(request, CHAT, call_id=str, convert=convert)
        converted.append(0)
        messages = (*messages, replace(answer(), content=(Text(text="so"),)), user("more"))
    assert max(converted[1:]) <= 4


def test_no_more_than_the_limit_is_kept():
    history, kept = EncodedHistory(), 0
    large = "x" * (encoded_history.KEPT_BYTES // 3)
    messages: tuple[Message, ...] = ()
    for _ in range(6):
        messages = (*messages, user(large), answer())
        request = ModelRequest(system="", messages=messages)
        body = chat.split_body(request, CHAT, history)
        kept = len(body.encoded)
        assert kept <= encoded_history.KEPT_BYTES
        assert body.encode() == anew(chat.split_body, request, CHAT)
    assert kept > 0
    short = ModelRequest(system="", messages=(user(large), answer(), user("b")))
    assert chat.split_body(short, CHAT, history).encoded
