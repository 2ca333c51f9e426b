"""The replay server of the recorded traffic, as a process, and the check of what an adapter made of it."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import anyio

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Text, Thinking, UserMessage
from agent_core.providers import (
    Model,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
    WireApi,
)
from agent_core.providers.adapters.anthropic_messages import AnthropicMessages
from agent_core.providers.adapters.azure_openai_responses import AzureOpenAIResponses
from agent_core.providers.adapters.bedrock_converse import BedrockConverse
from agent_core.providers.adapters.google_generative_ai import GoogleGenerativeAI
from agent_core.providers.adapters.google_vertex import GoogleVertex
from agent_core.providers.adapters.mistral_conversations import MistralConversations
from agent_core.providers.adapters.ollama_chat import OllamaChat
from agent_core.providers.adapters.openai_completions import OpenAICompletions
from agent_core.providers.adapters.openai_responses import OpenAIResponses
from agent_core.providers.auth.credentials import Authenticator, RequestCredentials
from agent_core.providers.http.client import HttpPool, StreamTimeouts


class Opener(Protocol):
    """Makes a model of one API."""

    def __call__(self, model: ModelInfo, *, access: Authenticator, pool: HttpPool) -> Model: ...


OPENERS: dict[WireApi, Opener] = {
    "anthropic-messages": AnthropicMessages,
    "azure-openai-responses": AzureOpenAIResponses,
    "bedrock-converse-stream": BedrockConverse,
    "google-generative-ai": GoogleGenerativeAI,
    "google-vertex": GoogleVertex,
    "mistral-conversations": MistralConversations,
    "ollama-chat": OllamaChat,
    "openai-completions": OpenAICompletions,
    "openai-responses": OpenAIResponses,
}
"""One line for each API that is checked against recorded traffic."""


@dataclass(frozen=True)
class Reading:
    """How a kind of recording is read."""

    recorded: str
    """What the recordings call the API."""
    api: WireApi
    provider: str | None = None
    """Only of this provider; None: of all."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the model's facts must say."""


PROJECT = {"compat": {"project": "p"}}
READINGS = (
    Reading("anthropic-messages", "anthropic-messages"),
    Reading("bedrock-converse", "bedrock-converse-stream"),
    Reading("bedrock-converse-stream", "bedrock-converse-stream"),
    Reading("gemini", "google-generative-ai"),
    Reading("gemini", "google-vertex", provider="vertex", facts=PROJECT),
    Reading("ollama-native", "ollama-chat"),
    Reading("openai-chat", "mistral-conversations", provider="mistral"),
    Reading("openai-chat", "openai-completions"),
    Reading("openai-responses", "azure-openai-responses", provider="azure"),
    Reading("openai-responses", "openai-responses"),
    Reading("vertex-raw", "google-vertex", facts={"id": "claude-3-7-sonnet@1", **PROJECT}),
)
LAB = ModelInfo(
    provider="lab",
    id="m",
    api="openai-completions",
    name="M",
    context_window=200_000,
    max_tokens=8_192,
)
HELLO = ModelRequest(
    system="Be brief.", messages=(UserMessage(content=(Text(text="Hello"),), at_ms=0),)
)


class OpenDoor:
    """Lets every request in with a key that must never show."""

    def __init__(self, *, bearer: bool = False) -> None:
        self._bearer = bearer

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials(key="sk-test-very-secret", bearer=self._bearer)


@dataclass
class Case:
    """One recorded exchange."""

    name: str
    api: WireApi
    streaming: bool
    status: int
    meta: dict[str, Any]
    facts: Mapping[str, Any]

    @property
    def expected(self) -> dict[str, Any]:
        return self.meta["expected"]

    @property
    def size(self) -> int:
        return self.meta["response"]["bytes"]


@dataclass
class Outcome:
    """What came of a call."""

    parts: list[StreamEvent]
    message: AssistantMessage | None = None
    error: ProviderError | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, ThinkingDelta))


def load_cases(shared: Path) -> list[Case]:
    cases = []
    for path in sorted((shared / "data/provider-traffic").glob("*/*.meta.json")):
        meta = json.loads(path.read_text(encoding="utf-8"))
        cases.extend(
            Case(
                name=meta["case"],
                api=reading.api,
                streaming=meta["streaming"],
                status=meta["response"]["status"],
                meta=meta,
                facts=reading.facts,
            )
            for reading in READINGS
            if reading.recorded == meta["api"] and reading.provider in (None, meta["provider"])
        )
    return cases


@contextmanager
def replay_server(shared: Path) -> Generator[str]:
    """Run the server; gives its base URL."""
    process = subprocess.Popen(
        [
            sys.executable,
            str(shared / "tools/replay_server.py"),
            "--cases",
            str(shared / "data/provider-traffic"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def checker(shared: Path) -> Any:
    spec = importlib.util.spec_from_file_location("check", shared / "tools/check_expected.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compare


def pool(*, first_byte_s: float = 20.0, idle_s: float = 20.0) -> HttpPool:
    return HttpPool(
        clock=SystemClock(), limits=StreamTimeouts(first_byte_s=first_byte_s, idle_s=idle_s)
    )


def model_at(url: str, api: WireApi, connections: HttpPool, **more: Any) -> Model:
    facts = replace(LAB, api=api, base_url=url, **more)
    # Vertex takes a plain key for Gemini alone.
    access = OpenDoor(bearer=api == "google-vertex")
    return OPENERS[api](facts, access=access, pool=connections)


def replayed(server: str, case: Case, mode: str, connections: HttpPool) -> Model:
    """Give a model whose server answers with a recording, delivered in a mode; plainly when it has no name."""
    at = f"{server}/case/{case.name}{'@' + mode if mode else ''}"
    return model_at(at, case.api, connections, provider=case.meta["provider"], **case.facts)


async def ask(model: Model, request: ModelRequest = HELLO) -> Outcome:
    outcome = Outcome(parts=[])
    try:
        with anyio.fail_after(15):
            async with model.stream(request) as parts:
                async for part in parts:
                    if isinstance(part, StreamFinished):
                        outcome.message = part.message
                    else:
                        outcome.parts.append(part)
    except ProviderError as error:
        outcome.error = error
    return outcome


def as_expected(outcome: Outcome) -> dict[str, Any]:
    """Give an outcome in the words of the recordings' check."""
    message = outcome.message
    made: dict[str, Any] = {"text": outcome.text, "reasoning": outcome.thinking}
    if outcome.error is not None:
        error = outcome.error
        made["error"] = {
            "kind": error.reason,
            "status": error.status,
            "retry_after_s": error.retry_after_s,
        }
    if message is not None:
        made["text"] = message.text
        made["reasoning"] = "".join(
            part.text for part in message.content if isinstance(part, Thinking)
        )
        made["stop_reason_raw"] = message.raw_stop_reason
        made["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            for call in message.tool_calls
        ]
    return made
