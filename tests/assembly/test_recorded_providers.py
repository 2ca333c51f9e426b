"""Whole sessions on what providers really sent: words, tool calls, events and memory, for four of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_core import AgentSession, create_session
from agent_core.events import MessageDelta, MessageEnded, MessageStarted
from agent_core.messages import AssistantMessage, ToolResultMessage
from agent_core.tools import text_result
from tests.providers.replay import replay_server
from tests.support.folders import Folder, ask
from tests.support.tools import FunctionTool

PROVIDERS = {
    "anthropic": ("anthropic-messages", "anthropic-messages"),
    "openai": ("openai-responses", "openai-responses"),
    "gemini": ("gemini", "google-generative-ai"),
    "deepseek": ("openai-chat", "openai-completions"),
}
"""Folder of the recordings: what they call the API, and what we do."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Two recorded streams of one provider."""

    api: str
    words: dict[str, Any]
    """Ends with words and asks for no tool."""
    call: dict[str, Any]
    """Asks for one tool."""


@pytest.fixture(scope="module")
def server(shared: Path) -> Iterator[str]:
    with replay_server(shared) as url:
        yield url


@pytest.fixture(params=PROVIDERS)
def recorded(request: pytest.FixtureRequest, shared: Path) -> Recorded:
    recorded_as, api = PROVIDERS[request.param]
    folder = shared / "data/provider-traffic" / request.param
    metas = [json.loads(path.read_text()) for path in sorted(folder.glob("*.meta.json"))]
    streams = [
        meta
        for meta in metas
        if meta["streaming"] and meta["api"] == recorded_as and meta["response"]["status"] == 200
    ]
    return Recorded(
        api=api,
        words=next(meta for meta in streams if _is_words(meta["expected"])),
        call=next(meta for meta in streams if _is_call(meta["expected"])),
    )


def _is_words(expected: dict[str, Any]) -> bool:
    return (
        bool(expected["text"]) and not expected["tool_calls"] and not expected.get("stream_errors")
    )


def _is_call(expected: dict[str, Any]) -> bool:
    calls = expected["tool_calls"]
    return len(calls) == 1 and bool(calls[0]["arguments"]) and not expected.get("stream_errors")


class Ground:
    """A workspace whose model gives recorded streams, one after another."""

    def __init__(self, folder: Folder, server: str, recorded: Recorded) -> None:
        self.folder = folder
        self.recorded = recorded
        self._server = server
        lab = {
            "baseUrl": f"{server}/seq/session",
            "api": recorded.api,
            "apiKey": "x",
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8_192}],
        }
        config = folder.dirs.config
        config.mkdir(parents=True, exist_ok=True)
        (config / "models.json").write_text(json.dumps({"providers": {"lab": lab}}))

    def play(self, *metas: dict[str, Any]) -> None:
        self._control("reset")
        self._control("seq", {"name": "session", "cases": [meta["case"] for meta in metas]})

    def sent(self) -> list[str]:
        """Give the bodies of all requests, with plain letters."""
        log = httpx.get(f"{self._server}/_ctl/log").json()
        return [json.dumps(json.loads(one["body"]), ensure_ascii=False) for one in log]

    def open(self, *tools: FunctionTool):
        return create_session(
            workspace=self.folder.root,
            model="lab/m",
            env=self.folder.env,
            store="memory",
            custom_tools=tools,
            settings={"permission": {"mode": "yolo"}},
        )

    def _control(self, what: str, body: Any = None) -> None:
        httpx.post(f"{self._server}/_ctl/{what}", json=body or {}).raise_for_status()


@pytest.fixture
def ground(folder: Folder, server: str, recorded: Recorded) -> Ground:
    return Ground(folder, server, recorded)


async def test_a_prompt_is_answered_in_the_words_that_were_sent(ground: Ground) -> None:
    ground.play(ground.recorded.words)
    async with ground.open() as session:
        await ask(session)
        assert _last_words(session) == ground.recorded.words["expected"]["text"]


async def test_the_tool_is_called_as_the_model_asked(ground: Ground) -> None:
    wanted = ground.recorded.call["expected"]["tool_calls"][0]

    async def work(arguments: Any, context: Any):
        return text_result("the tool's own words")

    tool = FunctionTool(wanted["name"], work)
    ground.play(ground.recorded.call, ground.recorded.words)
    async with ground.open(tool) as session:
        await ask(session)
        given = [one for one in session.info.messages if isinstance(one, ToolResultMessage)]
    assert tool.calls == [wanted["arguments"]]
    assert [(one.tool_name, one.is_error) for one in given] == [(wanted["name"], False)]
    assert _last_words(session) == ground.recorded.words["expected"]["text"]
    assert "the tool's own words" in ground.sent()[1]


async def test_an_answer_begins_grows_and_ends(ground: Ground) -> None:
    ground.play(ground.recorded.words)
    async with ground.open() as session:
        reader = session.subscribe()
        await ask(session)
        events = [stamped.event for stamped in reader.take_now()]
    said = [
        event
        for event in events
        if isinstance(event, MessageStarted | MessageDelta | MessageEnded)
        and getattr(event, "role", "assistant") == "assistant"
    ]
    text = ground.recorded.words["expected"]["text"]
    assert isinstance(said[0], MessageStarted)
    assert isinstance(said[-1], MessageEnded)
    assert "".join(one.text for one in said if isinstance(one, MessageDelta)) == text


async def test_the_second_request_holds_what_was_said_before(ground: Ground) -> None:
    ground.play(ground.recorded.words, ground.recorded.words)
    async with ground.open() as session:
        await ask(session, "remember the number 4711")
        await ask(session, "which number?")
        answers = [one for one in session.info.messages if isinstance(one, AssistantMessage)]
    assert len(answers) == 2
    second = ground.sent()[1]
    begun = json.dumps(ground.recorded.words["expected"]["text"][:40], ensure_ascii=False)[1:-1]
    assert second.index("4711") < second.index(begun) < second.index("which number?")


def _last_words(session: AgentSession) -> str:
    return [one for one in session.info.messages if isinstance(one, AssistantMessage)][-1].text
