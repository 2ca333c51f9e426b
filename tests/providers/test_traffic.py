"""Every adapter reads recorded traffic of every provider that speaks its dialect, however it is delivered."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_core.providers.http.client import HttpPool
from tests.providers.replay import (
    Case,
    Outcome,
    as_expected,
    ask,
    checker,
    load_cases,
    model_at,
    pool,
    replay_server,
    replayed,
)
from tests.support.harness.sizes import at_size, is_campaign

pytestmark = [
    pytest.mark.timeout(at_size(ci=120, campaign=900)),
    pytest.mark.usefixtures("may_take_long"),
]

ENDLESS = {"mistral/chat-stream-mistral-thinking-streaming"}
"""Recordings that their authors cut before the end."""
TWO_IN_ONE = {
    "openai/responses-stream-openai-reasoning-encrypted-content-1-chunks",
    "azure/responses-stream-azure-reasoning-encrypted-content-1-chunks",
}
"""Recordings that hold two answers, one behind the other; a cut may fall just behind the end of the first."""
REASONLESS = {
    "openai/chat-stream-tools-streaming-variant-a",
    "openai/chat-stream-tools-streaming-variant-b",
    "snowflake/chat-stream-snowflake-model-streaming",
}
"""Streams that give no finish reason at all; their `[DONE]` behind the usage is their end."""
REFUSALS = ("refusal", "SAFETY", "MODEL_ARMOR")
"""Ends that say: there is no answer, and there will be none."""
SMALL_BYTES = 3_000
"""What is sent byte by byte when time is short."""
FEW_MODES = ["", "bytes1", "utf8", "crlf", "rand:1", "glue", "gzip", "nodone", "bom+tocr"]
MORE_MODES = [
    "chunked",
    "rand:2",
    "rand:3",
    "rand:4",
    "rand:5",
    "tocrlf",
    "tocr",
    "bom",
    "comments",
    "nospace",
    "bom+tocr+rand:1",
    "comments+gzip+rand:1",
]
FEW_CUTS = ["cut%:50", "eof%:50", "rst%:50", "eof%:3"]
MORE_CUTS = ["cut%:3", "cut%:90", "eof%:90", "rst%:3", "rst%:90", "eof%:97", "cut%:97"]
IDLE_S = 0.5
STALLED_AT_ONCE = 12


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
    if case.expected["stop_reason_raw"] in REFUSALS:
        return "refused"
    inside = case.expected.get("error_in_200")
    return inside["kind"] if inside else None


def is_whole(case: Case, outcome: Outcome) -> bool:
    """Tell whether all that the recording says came: its end may lie behind it, or in the part that came."""
    assert outcome.message is not None
    expected = case.expected
    calls = [call.name for call in outcome.message.tool_calls]
    damaged = any("DAMAGED" in note for note in expected.get("notes", ()))
    return (
        outcome.message.text == expected["text"]
        and calls == [call["name"] for call in expected["tool_calls"]]
        and (damaged or not any(call.arguments_error for call in outcome.message.tool_calls))
    )


def print_table(mode: str, cases: list[Case], wrong: list[tuple[Case, object]]) -> None:
    """Show what was run, for the record of a campaign."""
    failed = Counter(case.api for case in {case.name: case for case, _ in wrong}.values())
    for api, count in sorted(Counter(case.api for case in cases).items()):
        print(f"{mode or 'events':22} {api:26} {count:4} cases {failed[api]:3} failures")


@pytest.mark.parametrize(
    "mode",
    FEW_MODES + MORE_MODES if is_campaign() else FEW_MODES,
    ids=lambda mode: mode or "events",
)
async def test_recorded_answers_are_read_as_they_were_meant(
    mode: str, folder: Path, server: str, connections: HttpPool
):
    compare = checker(folder)
    wrong: list[tuple[Case, object]] = []
    cases = load_cases(folder)
    assert len(cases) > 350
    if mode == "bytes1" and not is_campaign():
        cases = [case for case in cases if case.size < SMALL_BYTES]
    for case in cases:
        outcome = await ask(replayed(server, case, mode, connections))
        wanted = reason_wanted(case, mode)
        got = outcome.error.reason if outcome.error else None
        if got != wanted:
            wrong.append((case, f"wanted {wanted}, came {outcome.error}"))
        if wanted is None or "error" in case.expected:
            differing = compare(case.expected, as_expected(outcome))
            wrong.extend((case, each) for each in differing)
        if outcome.message is not None and outcome.message.text != outcome.text:
            wrong.append((case, "the deltas do not add up to the answer"))
    print_table(mode, cases, wrong)
    assert [(case.api, case.name, what) for case, what in wrong] == []


@pytest.mark.parametrize("cut", FEW_CUTS + MORE_CUTS if is_campaign() else FEW_CUTS)
async def test_an_answer_that_ends_too_early_is_an_error_and_never_a_short_answer(
    cut: str, folder: Path, server: str, connections: HttpPool
):
    reasons = {"eof": "protocol", "cut": "network", "rst": "network"}
    wrong: list[tuple[Case, object]] = []
    cases = [case for case in load_cases(folder) if case.status < 400]
    for case in cases:
        outcome = await ask(replayed(server, case, cut, connections))
        if outcome.message is not None:
            if not is_whole(case, outcome):
                wrong.append((case, "a short answer"))
        elif outcome.error is None or outcome.error.reason not in (
            reasons[cut[:3]],
            reason_wanted(case, ""),
            "protocol" if case.name in TWO_IN_ONE else "",
        ):
            wrong.append((case, outcome.error))
    print_table(cut, cases, wrong)
    assert [(case.api, case.name, str(what)) for case, what in wrong] == []


async def test_an_answer_that_falls_silent_is_given_up(folder: Path, server: str):
    """The provider stops in the middle for longer than anybody waits."""
    everything = [case for case in load_cases(folder) if case.status < 400]
    per_api: Counter[str] = Counter()
    cases: list[Case] = []
    for case in everything:
        per_api[case.api] += 1
        if is_campaign() or per_api[case.api] <= 3:
            cases.append(case)
    hasty = pool(idle_s=IDLE_S)
    room = anyio.CapacityLimiter(STALLED_AT_ONCE)
    wrong: list[tuple[Case, object]] = []

    async def stalled(case: Case) -> None:
        mode = f"chunked+stall:{case.size // 2}:60"
        async with room:
            outcome = await ask(replayed(server, case, mode, hasty))
        if outcome.message is not None:
            if not is_whole(case, outcome):
                wrong.append((case, "a short answer"))
        elif outcome.error is None or outcome.error.reason not in (
            "timeout",
            "protocol" if case.name in TWO_IN_ONE else "",
        ):
            wrong.append((case, outcome.error))

    try:
        async with anyio.create_task_group() as tasks:
            for case in cases:
                tasks.start_soon(partial(stalled, case))
    finally:
        await hasty.aclose()
    print_table("stall", cases, wrong)
    assert [(case.api, case.name, str(what)) for case, what in wrong] == []


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
