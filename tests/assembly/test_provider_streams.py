"""Whole sessions on the streams of four providers: words, tool calls, events and memory.

The streams are small and stand in `tests/data/streams`, in the form that each vendor documents, so that every clone
runs this. What providers really sent is checked, adapter by adapter, in tests/providers/test_traffic.py.
"""

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from agent_core import AgentSession, create_session
from agent_core.events import MessageDelta, MessageEnded, MessageStarted
from agent_core.messages import AssistantMessage, ToolResultMessage
from agent_core.tools import text_result
from tests.providers.loopback import Loopback, Reply, loopback
from tests.support.harness.shared import ROOT
from tests.support.session.folders import Folder, ask
from tests.support.workspace.tools import FunctionTool

APIS = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "gemini": "google-generative-ai",
    "deepseek": "openai-completions",
}
WORDS = "2 + 2 = 4."
"""What each `…-words.sse` says."""
TOOL, ARGUMENTS = "lookup", {"query": "weather in Kyiv", "days": 2}
"""What each `…-call.sse` asks for."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A workspace whose model gives streams, one after another."""

    folder: Folder
    provider: str

    def play(self, *streams: str) -> AbstractAsyncContextManager[Loopback]:
        """Serve `words` and `call` in this order."""
        folder = ROOT / "tests/data/streams"
        bodies = [folder.joinpath(f"{self.provider}-{name}.sse").read_bytes() for name in streams]
        return loopback(*(Reply([body]) for body in bodies))

    def open(
        self, server: Loopback, *tools: FunctionTool
    ) -> AbstractAsyncContextManager[AgentSession]:
        lab = {
            "baseUrl": server.url,
            "api": APIS[self.provider],
            "apiKey": "x",
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8_192}],
        }
        config = self.folder.dirs.config
        config.mkdir(parents=True, exist_ok=True)
        (config / "models.json").write_text(json.dumps({"providers": {"lab": lab}}))
        return create_session(
            workspace=self.folder.root,
            model="lab/m",
            env=self.folder.env,
            store="memory",
            custom_tools=tools,
            settings={"permission": {"mode": "yolo"}},
        )


@pytest.fixture(params=APIS)
def ground(request: pytest.FixtureRequest, folder: Folder) -> Ground:
    return Ground(folder=folder, provider=request.param)


async def test_a_prompt_is_answered_in_the_words_that_were_sent(ground: Ground) -> None:
    async with ground.play("words") as server, ground.open(server) as session:
        await ask(session, "What is 2 + 2?")
        assert _last_words(session) == WORDS
        assert "What is 2 + 2?" in _sent(server)[0]


async def test_the_tool_is_called_as_the_model_asked(ground: Ground) -> None:
    async def work(arguments: Any, context: Any):
        return text_result("the tool's own words")

    tool = FunctionTool(TOOL, work)
    async with ground.play("call", "words") as server, ground.open(server, tool) as session:
        await ask(session)
        given = [one for one in session.info.messages if isinstance(one, ToolResultMessage)]
        assert _last_words(session) == WORDS
        assert "the tool's own words" in _sent(server)[1]
    assert tool.calls == [ARGUMENTS]
    assert [(one.tool_name, one.is_error) for one in given] == [(TOOL, False)]


async def test_an_answer_begins_grows_and_ends(ground: Ground) -> None:
    async with ground.play("words") as server, ground.open(server) as session:
        reader = session.subscribe()
        await ask(session)
        events = [stamped.event for stamped in reader.take_now()]
    said = [
        event
        for event in events
        if isinstance(event, MessageStarted | MessageDelta | MessageEnded)
        and getattr(event, "role", "assistant") == "assistant"
    ]
    assert isinstance(said[0], MessageStarted)
    assert isinstance(said[-1], MessageEnded)
    assert "".join(one.text for one in said if isinstance(one, MessageDelta)) == WORDS


async def test_the_second_request_holds_what_was_said_before(ground: Ground) -> None:
    async with ground.play("words", "words") as server, ground.open(server) as session:
        await ask(session, "remember the number 4711")
        await ask(session, "which number?")
        answers = [one for one in session.info.messages if isinstance(one, AssistantMessage)]
        second = _sent(server)[1]
    assert len(answers) == 2
    assert second.index("4711") < second.index(WORDS) < second.index("which number?")


def _sent(server: Loopback) -> list[str]:
    """Give the bodies of all requests, with plain letters."""
    return [json.dumps(one.body, ensure_ascii=False) for one in server.asked]


def _last_words(session: AgentSession) -> str:
    return [one for one in session.info.messages if isinstance(one, AssistantMessage)][-1].text
