"""The Gemini API: where it is asked, and what its chunks mean."""

from dataclasses import replace
from typing import Any

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import Text, Thinking, ToolCall, Usage
from agent_core.providers import ToolCallDelta, ToolCallStart
from agent_core.providers.adapters.google_generative_ai import GoogleGenerativeAI
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import LAB, OpenDoor, Outcome, ask

GEMINI = replace(LAB, api="google-generative-ai", id="gemini-2.5-flash")
COUNTS = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", **more}


def end(finish: str = "STOP", **more: Any) -> dict[str, Any]:
    return chunk(finish=finish, usageMetadata=COUNTS, **more)


def called(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **more}}


def more_of_it(*leaves: Any, goes_on: bool = True) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": list(leaves), "willContinue": goes_on}}


async def heard(pools: Pools, *events: Any) -> Outcome:
    async with loopback(Reply(sse(*events))) as server:
        facts = replace(GEMINI, base_url=f"{server.url}/v1beta")
        return await ask(GoogleGenerativeAI(facts, access=OpenDoor(), pool=pools()))


@pytest.mark.parametrize(
    ("base", "model", "bearer", "path", "entry"),
    [
        ("", "m", False, "/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key"),
        ("/x/", "m", False, "/x/models/m:streamGenerateContent?alt=sse", "x-goog-api-key"),
        (
            "/v1",
            "tunedModels/my own",
            True,
            "/v1/tunedModels/my%20own:streamGenerateContent?alt=sse",
            "authorization",
        ),
    ],
)
async def test_it_asks_for_events_with_the_key_in_a_header(
    pools: Pools, *, base: str, model: str, bearer: bool, path: str, entry: str
):
    async with loopback(Reply(sse(chunk({"text": "a"}), end()))) as server:
        facts = replace(GEMINI, id=model, base_url=server.url + base)
        outcome = await ask(GoogleGenerativeAI(facts, access=OpenDoor(bearer=bearer), pool=pools()))
        (asked,) = server.asked
    assert outcome.error is None
    assert asked.path == path
    assert asked.headers[entry].endswith("sk-test-very-secret")
    assert {"x-goog-api-key", "authorization"} & set(asked.headers) == {entry}


async def test_a_signature_stays_where_it_rode(pools: Pools):
    outcome = await heard(
        pools,
        chunk({"text": "h", "thought": True}),
        chunk({"text": "m", "thought": True}),
        chunk({"text": "", "thought": True}),
        chunk({"text": "Hel"}),
        chunk({"text": "lo"}, {"text": "!", "thoughtSignature": "s1"}, {"text": "more"}),
        chunk({**called("read", args={"path": "a"}, id="c1"), "thoughtSignature": "s2"}),
        chunk({"text": "", "thoughtSignature": "s3"}),
        end(),
    )
    assert outcome.message is not None
    assert outcome.message.content == (
        Thinking(text="hm"),
        Text(text="Hello"),
        Text(text="!", signature="s1"),
        Text(text="more"),
        ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "a"}, signature="s2"),
        Text(text="", signature="s3"),
    )
    assert (outcome.text, outcome.thinking) == ("Hello!more", "hm")
    assert (outcome.message.stop_reason, outcome.message.raw_stop_reason) == ("tool_use", "STOP")
    assert outcome.message.response_id == "r1"


async def test_calls_without_an_id_get_one_each(pools: Pools):
    outcome = await heard(pools, chunk(called("ls"), called("ls", args={}), called("ls")), end())
    assert outcome.message is not None
    ids = [call.id for call in outcome.message.tool_calls]
    assert len(set(ids)) == 3
    assert all(ids)
    assert [call.arguments for call in outcome.message.tool_calls] == [{}, {}, {}]


async def test_arguments_may_come_leaf_by_leaf(pools: Pools):
    outcome = await heard(
        pools,
        chunk({**called("edit", willContinue=True, id="c1"), "thoughtSignature": "s1"}),
        chunk(more_of_it({"jsonPath": "$.path", "stringValue": "a.", "willContinue": True})),
        chunk(more_of_it({"jsonPath": "$.path", "stringValue": "py"})),
        chunk(more_of_it({"jsonPath": "$.edits[0].line", "numberValue": 3})),
        chunk({"functionCall": {}}, usageMetadata={"trafficType": "ON_DEMAND"}),
        chunk(called("ls")),
        chunk(called("write", willContinue=True)),
        chunk(more_of_it({"jsonPath": "$.all", "boolValue": True}, goes_on=False)),
        chunk({"functionCall": {}}),
        end(),
    )
    assert outcome.message is not None
    edit, ls, write = outcome.message.tool_calls
    assert edit == ToolCall(
        id=ToolCallId("c1"),
        name="edit",
        arguments={"path": "a.py", "edits": [{"line": 3}]},
        signature="s1",
    )
    assert (ls.name, ls.arguments) == ("ls", {})
    assert (write.name, write.arguments) == ("write", {"all": True})
    starts = [part.name for part in outcome.parts if isinstance(part, ToolCallStart)]
    assert starts == ["edit", "ls", "write"]
    shown = [part.text for part in outcome.parts if isinstance(part, ToolCallDelta)]
    assert shown == ['{"path":"a.py","edits":[{"line":3}]}', "{}", '{"all":true}']


@pytest.mark.parametrize("ending", [(), ({"functionCall": {}},)], ids=["never ended", "too soon"])
async def test_arguments_that_were_not_whole_are_never_taken_for_whole(ending: Any, pools: Pools):
    outcome = await heard(
        pools,
        chunk(called("bash", willContinue=True)),
        chunk(
            more_of_it({"jsonPath": "$.command", "stringValue": "rm -rf /", "willContinue": True})
        ),
        *(chunk(part) for part in ending),
        end(),
    )
    assert outcome.message is not None
    (call,) = outcome.message.tool_calls
    assert call.arguments == {}
    assert "rm -rf /" in str(call.arguments_error)


@pytest.mark.parametrize(
    "parts",
    [
        ({"functionCall": {"args": {"a": 1}}},),
        (more_of_it({"jsonPath": "$.a", "numberValue": 1}),),
        (called("x", willContinue=True), more_of_it({"jsonPath": "a[", "numberValue": 1})),
    ],
    ids=["no name", "no call", "no path"],
)
async def test_arguments_that_fit_nowhere_are_an_error(parts: Any, pools: Pools):
    outcome = await heard(pools, *(chunk(part) for part in parts), end())
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


async def test_a_closing_mark_without_a_call_is_nothing(pools: Pools):
    outcome = await heard(pools, chunk({"functionCall": {}}, {"text": "a"}), end())
    assert outcome.message is not None
    assert outcome.message.content == (Text(text="a"),)


async def test_the_last_counts_win_and_thoughts_are_output(pools: Pools):
    counts = {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "toolUsePromptTokenCount": 2,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "totalTokenCount": 24,
    }
    outcome = await heard(
        pools,
        chunk({"text": "a"}, usageMetadata=COUNTS),
        chunk(finish="STOP", usageMetadata=counts),
        {"usageMetadata": {"trafficType": "ON_DEMAND"}},
    )
    assert outcome.message is not None
    usage = outcome.message.usage
    assert usage == Usage(input=8, output=12, cache_read=4, reasoning=7)
    assert usage.total == counts["totalTokenCount"]


async def test_only_the_first_candidate_is_the_answer(pools: Pools):
    other = {"index": 1, "content": {"parts": [{"text": "other"}]}, "finishReason": "SAFETY"}
    outcome = await heard(pools, {"candidates": [other]}, chunk({"text": "a"}), end())
    assert outcome.message is not None
    assert outcome.text == "a"


async def test_what_google_ran_itself_is_no_call_of_ours(pools: Pools):
    outcome = await heard(
        pools,
        chunk({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
        chunk({"toolCall": {"name": "x"}, "thoughtSignature": "s"}, {"text": "one"}),
        end(),
    )
    assert outcome.message is not None
    assert outcome.message.content == (Text(text="one"),)


@pytest.mark.parametrize(
    ("finish", "parts", "stop"),
    [
        ("STOP", ({"text": "a"},), "stop"),
        ("STOP", (), "stop"),
        ("MAX_TOKENS", ({"text": "a"},), "length"),
        ("MAX_TOKENS", (called("ls"),), "length"),
        ("UNEXPECTED_TOOL_CALL", (called("ls"),), "tool_use"),
    ],
)
async def test_a_finish_reason_is_told_in_our_words(
    finish: str, parts: Any, stop: str, pools: Pools
):
    outcome = await heard(pools, chunk(*parts), end(finish))
    assert outcome.message is not None
    assert (outcome.message.stop_reason, outcome.message.raw_stop_reason) == (stop, finish)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("SAFETY", "refused"),
        ("MODEL_ARMOR", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("RECITATION", "refused"),
        ("UNEXPECTED_TOOL_CALL", "server"),
        ("MALFORMED_FUNCTION_CALL", "server"),
        ("OTHER", "server"),
        ("OF_THE_FUTURE", "server"),
    ],
)
async def test_a_bad_end_is_an_error_that_says_why(finish: str, reason: str, pools: Pools):
    last = {"candidates": [{"finishReason": finish, "finishMessage": "because"}]}
    outcome = await heard(pools, chunk({"text": "a"}), last)
    assert outcome.error is not None
    assert outcome.error.reason == reason
    assert f"{finish}: because" in str(outcome.error)
    assert outcome.text == "a"


async def test_a_blocked_prompt_is_a_refusal(pools: Pools):
    feedback = {"blockReason": "OTHER", "blockReasonMessage": "not that"}
    outcome = await heard(pools, {"promptFeedback": feedback, "usageMetadata": COUNTS})
    assert outcome.error is not None
    assert outcome.error.reason == "refused"
    assert "OTHER: not that" in str(outcome.error)


async def test_a_harmless_feedback_is_none(pools: Pools):
    outcome = await heard(pools, chunk({"text": "a"}, promptFeedback={"safetyRatings": []}), end())
    assert outcome.message is not None


@pytest.mark.parametrize(
    "events",
    [(chunk({"text": "a"}),), (chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED"),)],
    ids=["none", "unspecified"],
)
async def test_a_stream_without_a_finish_reason_is_no_answer(events: Any, pools: Pools):
    outcome = await heard(pools, *events)
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


async def test_words_behind_a_finish_reason_still_count(pools: Pools):
    outcome = await heard(pools, chunk({"text": "a"}, finish="STOP"), chunk({"text": "b"}), end())
    assert outcome.message is not None
    assert outcome.message.text == "ab"


async def test_an_error_in_the_stream_is_an_error_of_its_kind(pools: Pools):
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    outcome = await heard(pools, chunk({"text": "a"}), error)
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("server", False)


async def test_an_answer_in_one_piece_is_read_too(pools: Pools):
    body = chunk({"text": "a"}, called("ls"), finish="STOP", usageMetadata=COUNTS)
    async with loopback(Reply([sse(body)[0].removeprefix(b"data: ")])) as server:
        facts = replace(GEMINI, base_url=server.url)
        outcome = await ask(GoogleGenerativeAI(facts, access=OpenDoor(), pool=pools()))
    assert outcome.message is not None
    assert outcome.message.text == "a"
    assert outcome.message.stop_reason == "tool_use"


async def test_a_rate_limit_says_how_long_to_wait(pools: Pools):
    body = (
        b'{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": '
        b'[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48s"}]}}'
    )
    async with loopback(Reply([body], status=429)) as server:
        facts = replace(GEMINI, base_url=server.url)
        outcome = await ask(GoogleGenerativeAI(facts, access=OpenDoor(), pool=pools()))
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.retry_after_s) == ("rate_limit", 48.0)
