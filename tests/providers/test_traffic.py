"""Both adapters read recorded traffic of every provider that speaks their dialects, however it is delivered."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent_core.providers.http import HttpPool
from tests.providers.replay import (
    Case,
    as_expected,
    ask,
    checker,
    load_cases,
    model_at,
    pool,
    replay_server,
)
from tests.support.sizes import is_campaign

pytestmark = pytest.mark.timeout(120)

ENDLESS = {"mistral/chat-stream-mistral-thinking-streaming"}
"""Recordings that their authors cut before the end."""
REASONLESS = {
    "openai/chat-stream-tools-streaming-variant-a",
    "openai/chat-stream-tools-streaming-variant-b",
    "snowflake/chat-stream-snowflake-model-streaming",
}
"""Streams that give no finish reason at all; their `[DONE]` behind the usage is their end."""
REFUSED = {"anthropic/messages-stream-anthropic-refusal-chunks"}
FAILING_INSIDE = {"groq/chat-stream-tool-use-failed-error-streaming-with-text-2"}
SMALL_BYTES = 3_000
"""What is sent byte by byte when time is short."""
FEW_MODES = ["", "bytes1", "utf8", "crlf", "glue", "gzip", "nodone", "bom+tocr"]
MORE_MODES = ["rand:3", "tocrlf", "tocr", "bom", "comments", "nospace", "bom+tocr+rand:1"]
FEW_CUTS = ["cut%:40", "eof%:40", "rst%:40", "eof%:3"]
MORE_CUTS = ["cut%:90", "eof%:90", "rst%:90", "eof%:97", "cut%:97"]


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    if not (shared / "data/provider-traffic").is_dir():
        pytest.skip("the recorded traffic is not there")
    return shared


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with replay_server(folder) as url:
        yield url


@pytest.fixture
async def connections() -> AsyncIterator[HttpPool]:
    made = pool()
    yield made
    await made.aclose()


def reason_wanted(case: Case, mode: str) -> str | None:
    """Say how a case must fail, if it must."""
    if "error" in case.expected:
        return case.expected["error"]["kind"]
    if case.name in ENDLESS or (mode == "nodone" and case.name in REASONLESS):
        return "protocol"
    if case.name in REFUSED:
        return "refused"
    return "invalid_request" if case.name in FAILING_INSIDE else None


@pytest.mark.parametrize(
    "mode",
    FEW_MODES + MORE_MODES if is_campaign() else FEW_MODES,
    ids=lambda mode: mode or "events",
)
async def test_recorded_answers_are_read_as_they_were_meant(
    mode: str, folder: Path, server: str, connections: HttpPool
):
    compare = checker(folder)
    wrong: list[object] = []
    cases = [case for case in load_cases(folder) if case.streaming or case.status >= 400]
    assert len(cases) > 150
    if mode == "bytes1" and not is_campaign():
        cases = [case for case in cases if case.size < SMALL_BYTES]
    for case in cases:
        at = f"{server}/case/{case.name}{'@' + mode if mode else ''}"
        outcome = await ask(model_at(at, case.api, connections))
        wanted = reason_wanted(case, mode)
        got = outcome.error.reason if outcome.error else None
        if got != wanted:
            wrong.append((case.name, wanted, str(outcome.error)))
        if wanted is None or "error" in case.expected:
            wrong.extend((case.name, each) for each in compare(case.expected, as_expected(outcome)))
        if outcome.message is not None and outcome.message.text != outcome.text:
            wrong.append((case.name, "the deltas do not add up to the answer"))
    assert wrong == []


@pytest.mark.parametrize("cut", FEW_CUTS + MORE_CUTS if is_campaign() else FEW_CUTS)
async def test_a_stream_that_ends_too_early_is_an_error_and_never_a_short_answer(
    cut: str, folder: Path, server: str, connections: HttpPool
):
    reasons = {"eof": "protocol", "cut": "network", "rst": "network"}
    short: list[str] = []
    for case in load_cases(folder):
        if not case.streaming or case.status >= 400:
            continue
        outcome = await ask(model_at(f"{server}/case/{case.name}@{cut}", case.api, connections))
        expected = case.expected
        if outcome.message is not None:
            whole = outcome.message.text == expected["text"]
            if not whole or len(outcome.message.tool_calls) != len(expected["tool_calls"]):
                short.append(case.name)
        elif outcome.error is None or outcome.error.reason not in (
            reasons[cut[:3]],
            reason_wanted(case, ""),
        ):
            short.append(f"{case.name}: {outcome.error}")
    assert short == []


async def test_a_retry_after_of_the_server_is_passed_on(server: str, connections: HttpPool):
    case = "anthropic/messages-stream-image-prompt@retry-as:429"
    model = model_at(f"{server}/case/{case}", "anthropic-messages", connections)
    first = await ask(model)
    assert first.error is not None
    assert (first.error.reason, first.error.status, first.error.retry_after_s) == (
        "rate_limit",
        429,
        1.0,
    )
    second = await ask(model)
    assert second.message is not None
