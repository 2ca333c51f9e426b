"""The Responses API: what is sent, to whom."""

from dataclasses import replace
from itertools import takewhile
from typing import Any

import pytest

from agent_core.kernel import ToolCallId, json
from agent_core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body, session_headers
from tests.providers.replay import HELLO
from tests.providers.requests.conversations import Signs, made_up_request
from tests.providers.wire.responses_events import FACTS
from tests.support.harness.sizes import at_size

OPENAI = replace(FACTS, provider="openai", base_url="https://api.openai.com/v1")
LOCAL = replace(FACTS, base_url="http://localhost:1234/v1")
HOSTS = {
    "openai": OPENAI.base_url,
    "azure": "https://mine.openai.azure.com/openai/v1",
    "bedrock-mantle": "https://bedrock-mantle.us-east-1.api.aws/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "lmstudio": LOCAL.base_url,
    "openrouter": "https://openrouter.ai/api/v1",
    "xai": "https://api.x.ai/v1",
}
PICTURE = Image(mime="image/png", data="aWs=")
SHOWN = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aWs="}
SCHEMA = {"type": "object", "properties": {}}
READ = ToolDeclaration(name="read", description="Reads.", parameters=SCHEMA)
READ_SENT = {
    "type": "function",
    "name": "read",
    "description": "Reads.",
    "parameters": SCHEMA,
}
CALL = ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "ä"}, signature="fc_1")
CALL_SENT = {
    "type": "function_call",
    "call_id": "c1",
    "name": "read",
    "arguments": '{"path":"ä"}',
}
ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
NO_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "No result provided"}


def signed(item: dict[str, Any]) -> str:
    return json.encode(item).decode()


def own_signs() -> Signs:
    """What OpenAI puts on its parts, and what others do."""
    kept = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    raw = [{"type": "reasoning_text", "text": "hm"}]

    def thought(number: int) -> str | None:
        named = {**kept, "id": f"rs_{number}"}
        return (
            None,
            signed({**named, "encrypted_content": "gAAA"}),
            signed({**named, "content": raw}),
            signed(named),
            "no JSON",
        )[number % 5]

    def text(number: int) -> str | None:
        named = {"v": 1, "id": f"msg_{number}"}
        long = {**named, "id": f"msg_{'x' * 80}"}
        return (None, signed(named), signed({**named, "phase": "commentary"}), signed(long), "{")[
            number % 5
        ]

    def call(number: int) -> str | None:
        return (f"fc_{number}", f"fc_{'y' * 80}", "uuid", None)[number % 4]

    return Signs(text=text, thought=thought, call=call, call_id=lambda number: f"c{number % 7}")


def said(*content: Any, facts: ModelInfo = OPENAI) -> AssistantMessage:
    return AssistantMessage(
        content=content,
        api=facts.api,
        provider=facts.provider,
        model=facts.id,
        stop_reason="stop",
        at_ms=0,
    )


def body(request: ModelRequest, facts: ModelInfo = OPENAI) -> dict[str, Any]:
    made = responses_body(request, facts, compat=responses_compat(facts), model=facts.id)
    return dict(json.as_object(json.decode(json.encode(made))))


def items(*messages: Message, facts: ModelInfo = OPENAI, **more: Any) -> list[Any]:
    return body(replace(HELLO, system="", messages=messages, **more), facts)["input"]


def test_openai_gets_the_full_form():
    request = ModelRequest(
        system="Be brief.",
        messages=(UserMessage(content=(Text(text="look"), PICTURE), at_ms=0),),
        tools=(READ,),
        thinking="high",
        session="s" * 80,
    )
    assert body(request) == {
        "model": "m",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "look"}, SHOWN]},
        ],
        "stream": True,
        "store": False,
        "max_output_tokens": 8192,
        "tools": [{**READ_SENT, "strict": False}],
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "s" * 64,
    }


def test_a_local_server_gets_the_plain_form():
    request = replace(HELLO, thinking="low", session="s", tools=())
    assert body(request, LOCAL) == {
        "model": "m",
        "input": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": True,
        "store": False,
        "max_output_tokens": 8192,
        "reasoning": {"effort": "low"},
    }


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("openai", {"reasoning": {"effort": "low", "summary": "auto"}, "include": True}),
        ("azure", {"reasoning": {"effort": "low", "summary": "auto"}, "include": True}),
        ("openrouter", {"reasoning": {"effort": "low", "summary": "auto"}, "include": True}),
        ("bedrock-mantle", {"reasoning": {"effort": "low", "summary": "auto"}, "include": True}),
        ("deepseek", {"reasoning": {"effort": "low"}, "include": False}),
        ("xai", {"reasoning": {"summary": "auto"}, "include": True}),
    ],
)
def test_thoughts_are_asked_for_in_each_server_s_words(provider: str, sent: dict[str, Any]):
    made = body(replace(HELLO, thinking="low"), replace(FACTS, base_url=HOSTS[provider]))
    assert {"reasoning": made.get("reasoning"), "include": "include" in made} == sent


@pytest.mark.parametrize(
    ("facts", "sent"),
    [
        (OPENAI, {"effort": "none"}),
        (replace(OPENAI, compat={"thinkingLevelMap": {"off": "minimal"}}), {"effort": "minimal"}),
        (
            replace(OPENAI, compat={"thinkingLevelMap": {"off": None}}),
            {"effort": "minimal", "summary": "auto"},
        ),
        (replace(OPENAI, base_url="https://api.githubcopilot.com"), None),
        (replace(OPENAI, reasoning=False), None),
    ],
    ids=["none", "a word of its own", "cannot be off", "copilot", "does not think"],
)
def test_no_thinking_is_asked_for(facts: ModelInfo, sent: Any):
    assert body(HELLO, facts).get("reasoning") == sent


def test_a_limit_below_what_the_api_takes_is_raised():
    assert body(replace(HELLO, max_tokens=1))["max_output_tokens"] == 16


@pytest.mark.parametrize(
    ("compat", "key", "value"),
    [
        ({"supportsStore": False}, "store", None),
        ({"supportsMaxOutputTokens": False}, "max_output_tokens", None),
        ({"supportsPromptCacheKey": False}, "prompt_cache_key", None),
        ({"cacheRetention": "none"}, "prompt_cache_key", None),
        ({"cacheRetention": "long"}, "prompt_cache_retention", "24h"),
        (
            {"cacheRetention": "long", "supportsLongCacheRetention": False},
            "prompt_cache_retention",
            None,
        ),
        ({"supportsReasoningEffort": False}, "reasoning", {"summary": "auto"}),
        ({"supportsReasoningSummary": False}, "reasoning", {"effort": "low"}),
        ({"supportsEncryptedReasoning": False}, "include", None),
        ({"supportsStrictMode": False}, "tools", [READ_SENT]),
    ],
    ids=[
        "no store",
        "no limit",
        "no cache key",
        "no caching",
        "long",
        "no long",
        "no effort",
        "no summary",
        "nothing encrypted",
        "no strict",
    ],
)
def test_what_models_json_says_wins(compat: Any, key: str, value: Any):
    request = replace(HELLO, thinking="low", session="s", tools=(READ,))
    assert body(request, replace(OPENAI, compat=compat)).get(key) == value


@pytest.mark.parametrize(
    ("facts", "sent"),
    [
        (OPENAI, {"session_id": "s", "x-client-request-id": "s"}),
        (replace(OPENAI, compat={"sendSessionIdHeader": False}), {"x-client-request-id": "s"}),
        (replace(OPENAI, compat={"cacheRetention": "none"}), {}),
        (replace(OPENAI, base_url=HOSTS["openrouter"]), {"x-session-id": "s"}),
        (LOCAL, {}),
        (
            replace(LOCAL, compat={"sendSessionIdHeader": True}),
            {"session_id": "s", "x-client-request-id": "s"},
        ),
        (replace(LOCAL, compat={"sessionAffinityFormat": "openrouter"}), {"x-session-id": "s"}),
    ],
    ids=["openai", "no session id", "no cache", "openrouter", "local", "told to", "told how"],
)
def test_headers_tell_the_session_where_it_helps(facts: ModelInfo, sent: dict[str, str]):
    assert session_headers(replace(HELLO, session="s"), responses_compat(facts)) == sent


def test_a_session_that_cannot_stand_in_a_header_does_not():
    request = replace(HELLO, session="sitzung-ä")
    assert session_headers(request, responses_compat(OPENAI)) == {}


def test_a_thought_goes_back_to_its_model_with_what_followed():
    answer = said(Thinking(text="hm", signature=signed(ENCRYPTED)), CALL)
    assert items(answer) == [ENCRYPTED, {**CALL_SENT, "id": "fc_1"}, NO_RESULT]


def test_xai_takes_its_thoughts_without_their_ids():
    facts = replace(OPENAI, base_url=HOSTS["xai"])
    sent = items(said(Thinking(text="", signature=signed(ENCRYPTED)), CALL), facts=facts)
    assert sent[0] == {key: value for key, value in ENCRYPTED.items() if key != "id"}


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(None, id="unsigned"),
        pytest.param(signed({"type": "reasoning", "id": "rs_1", "summary": []}), id="not stored"),
        pytest.param("reasoning_content", id="another dialect's"),
        pytest.param("{", id="broken"),
    ],
)
def test_what_followed_a_thought_that_cannot_go_back_goes_without_its_id(signature: str | None):
    text = Text(text="ok", signature='{"v":1,"id":"msg_1","phase":"commentary"}')
    assert items(said(Thinking(text="hm", signature=signature), text, CALL)) == [
        {"role": "assistant", "content": "ok", "phase": "commentary"},
        CALL_SENT,
        NO_RESULT,
    ]


def test_a_thought_that_nothing_followed_stays_away():
    thought = Thinking(text="hm", signature=signed(ENCRYPTED))
    sent = items(said(Text(text="ok"), thought), UserMessage(content=(Text(text="go"),), at_ms=0))
    assert sent == [
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "go"},
    ]


def test_another_model_s_answer_goes_without_ids_and_thoughts():
    answer = said(
        Thinking(text="hm", signature=signed(ENCRYPTED)),
        Text(text="ok", signature='{"v":1,"id":"msg_1","phase":"commentary"}'),
        CALL,
    )
    assert items(replace(answer, model="other")) == [
        {"role": "assistant", "content": "ok"},
        CALL_SENT,
        NO_RESULT,
    ]
    assert items(answer, without_thoughts=True) == items(replace(answer, model="other"))


def test_ids_of_elsewhere_are_made_to_fit_and_results_follow_them():
    call = replace(CALL, id=ToolCallId(f"functions.read:{'x' * 80}|fc_1"), signature=None)
    result = ToolResultMessage(
        call_id=call.id, tool_name="read", content=(Text(text="text"),), at_ms=0
    )
    sent, output = items(said(call), result)
    assert len(sent["call_id"]) == 64
    assert sent["call_id"].startswith("functions_read_")
    assert output == {
        "type": "function_call_output",
        "call_id": sent["call_id"],
        "output": "text",
    }


@pytest.mark.parametrize(
    ("content", "official", "plain"),
    [
        ((), "(no tool output)", "(no tool output)"),
        ((PICTURE,), [SHOWN], "(see attached image)"),
        (
            (Text(text="this"), PICTURE),
            [{"type": "input_text", "text": "this"}, SHOWN],
            "this",
        ),
    ],
    ids=["nothing", "a picture", "both"],
)
def test_pictures_of_tools_stand_in_the_result_where_that_is_taken(
    content: Any, official: Any, plain: str
):
    result = ToolResultMessage(call_id=CALL.id, tool_name="read", content=content, at_ms=0)
    sent = {"type": "function_call_output", "call_id": "c1"}
    assert items(said(CALL), result)[1:] == [{**sent, "output": official}]
    lead = {"type": "input_text", "text": "Attached image(s) from tool result:"}
    shown = [{"role": "user", "content": [lead, SHOWN]}] if PICTURE in content else []
    assert items(said(CALL, facts=LOCAL), result, facts=LOCAL)[1:] == [
        {**sent, "output": plain},
        *shown,
    ]


@pytest.mark.parametrize("provider", HOSTS)
def test_whatever_a_conversation_holds_its_calls_are_answered_and_its_thoughts_followed(
    provider: str,
):
    for seed in range(at_size(ci=40, campaign=1000)):
        facts = replace(FACTS, base_url=HOSTS[provider], images=seed % 3 != 0)
        sent = body(made_up_request(seed, facts, own_signs()), facts)["input"]
        kinds = [item.get("type", item.get("role")) for item in sent]
        calls = [item["call_id"] for item in sent if item.get("type") == "function_call"]
        answered = [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
        assert calls == answered
        assert len(set(calls)) == len(calls)
        assert all(0 < len(call) <= 64 for call in calls)
        assert all(len(item.get("id", "")) <= 64 for item in sent)
        for at, kind in enumerate(kinds):
            if kind == "reasoning":
                rest = takewhile(
                    lambda one: one not in ("user", "function_call_output"), kinds[at:]
                )
                assert any(one in ("message", "assistant", "function_call") for one in rest)
