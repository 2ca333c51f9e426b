"""Models of every API and dialect, and the body that each would send."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import override

from agent_core.kernel import SystemClock, json
from agent_core.kernel.errors import ProviderError
from agent_core.providers import ModelInfo, ModelRequest, WireApi
from agent_core.providers.http.client import HttpClient, HttpPool, HttpResponse
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.wire.chat.stream import FIELDS
from tests.providers.replay import LAB, OPENERS, PROJECT, OpenDoor
from tests.providers.requests.conversations import Signs
from tests.providers.requests.validator import Body


@dataclass(frozen=True, kw_only=True)
class Target:
    """A kind of model that can be asked."""

    name: str
    api: WireApi
    judge: str
    """What the validator calls the API."""
    dialect: str | None = None
    signs: Signs = field(default_factory=Signs)
    """What such a model puts on its own parts."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def model_facts(self, *, reasoning: bool = True, images: bool = True) -> ModelInfo:
        facts = {"reasoning": reasoning, "images": images, **self.facts}
        return replace(LAB, api=self.api, provider=self.dialect or "lab", **facts)


class Sink:
    """Takes a request and answers nothing."""

    def __init__(self) -> None:
        self.posts: list[HttpRequest] = []

    async def send(self, post: HttpRequest) -> HttpResponse:
        self.posts.append(post)
        raise ProviderError("taken", reason="auth", provider=post.provider)

    async def aclose(self) -> None:
        """Nothing is open."""


class SinkPool(HttpPool):
    """Leads every request into the sink."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(clock=SystemClock())
        self._sink = sink

    @override
    async def client_for(self, url: str) -> HttpClient:
        return self._sink


async def sent(target: Target, facts: ModelInfo, request: ModelRequest) -> Body:
    """Ask a model, and give the body that it sent."""
    sink = Sink()
    # Vertex takes a plain key for Gemini alone.
    access = OpenDoor(bearer=target.api == "google-vertex")
    model = OPENERS[target.api](facts, access=access, pool=SinkPool(sink))
    try:
        async with model.stream(request) as parts:
            async for _ in parts:
                pass
    except ProviderError as error:
        if str(error) != "taken":
            raise
    (post,) = sink.posts
    return Body(api=target.judge, raw=post.body, dialect=target.dialect, model=facts.id)


def encoded(number: int) -> str:
    return base64.b64encode(b"signature %d" % number).decode()


def one_of(*choices: Callable[[int], str | None] | str | None) -> Callable[[int], str | None]:
    """Let parts in a row have different signatures."""

    def sign(number: int) -> str | None:
        choice = choices[number % len(choices)]
        return choice(number) if callable(choice) else choice

    return sign


def reasoning_item(number: int) -> str:
    item = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}
    return json.encode(item).decode()


def spoken_item(number: int) -> str:
    return json.encode({"v": 1, "id": f"msg_{number}", "phase": "commentary"}).decode()


def opaque(number: int) -> str:
    return json.encode({"field": "reasoning_text", "opaque": encoded(number)}).decode()


def details(number: int) -> str:
    entry = {"type": "reasoning.text", "text": "hm", "index": 0, "signature": encoded(number)}
    return json.encode({"field": "reasoning", "details": [entry]}).decode()


CHAT_SIGNS = Signs(thought=one_of(*FIELDS, details, opaque, None))
ANTHROPIC_SIGNS = Signs(
    thought=one_of(encoded, encoded, None), call_id=lambda number: f"toolu_{number % 5}"
)
GOOGLE_SIGNS = Signs(
    text=one_of(None, encoded), thought=one_of(encoded, None), call=one_of(encoded, None)
)
RESPONSES_SIGNS = Signs(
    text=one_of(None, spoken_item),
    thought=one_of(reasoning_item, None),
    call=one_of(None, lambda number: f"fc_{number}"),
    call_id=lambda number: f"call_{number % 5}",
)
MISTRAL_SIGNS = Signs(
    thought=one_of(None, encoded), call_id=lambda number: f"abcdefg{number % 100:02}"
)


def chat(
    dialect: str,
    url: str,
    judge: str = "openai-chat",
    signs: Signs = CHAT_SIGNS,
    name: str = "",
    **facts: Any,
) -> Target:
    return Target(
        name=name or f"chat-{dialect}",
        api="openai-completions",
        judge=judge,
        dialect=dialect,
        signs=signs,
        facts={"base_url": url, **facts},
    )


def bedrock(name: str, model: str) -> Target:
    return Target(
        name=f"bedrock-{name}",
        api="bedrock-converse-stream",
        judge="bedrock-converse-stream",
        signs=ANTHROPIC_SIGNS,
        facts={"id": model},
    )


def google(name: str, api: WireApi, model: str) -> Target:
    return Target(
        name=name,
        api=api,
        judge="gemini",
        signs=GOOGLE_SIGNS,
        facts={"id": model, **PROJECT},
    )


def responses(dialect: str, url: str, api: WireApi = "openai-responses") -> Target:
    return Target(
        name=f"responses-{dialect}",
        api=api,
        judge="openai-responses",
        dialect=dialect,
        signs=RESPONSES_SIGNS,
        facts={"base_url": url},
    )


TARGETS = (
    chat("openai", "https://api.openai.com/v1"),
    chat("deepseek", "https://api.deepseek.com"),
    chat("openrouter", "https://openrouter.ai/api/v1"),
    chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        name="chat-openrouter-claude",
        id="anthropic/claude-sonnet-4.5",
    ),
    chat("zai", "https://api.z.ai/api/paas/v4"),
    chat("alibaba", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    chat(
        "groq",
        "https://api.groq.com/openai/v1",
        judge="groq-chat",
        signs=Signs(thought=one_of("reasoning", None)),
    ),
    chat("xai", "https://api.x.ai/v1"),
    chat("lab", "http://127.0.0.1:1/v1"),
    Target(
        name="anthropic",
        api="anthropic-messages",
        judge="anthropic-messages",
        dialect="anthropic",
        signs=ANTHROPIC_SIGNS,
    ),
    Target(
        name="vertex-claude",
        api="google-vertex",
        judge="vertex-raw",
        dialect="vertex-anthropic",
        signs=ANTHROPIC_SIGNS,
        facts={"id": "claude-sonnet-4@1", **PROJECT},
    ),
    Target(
        name="mistral",
        api="mistral-conversations",
        judge="mistral-chat",
        dialect="mistral",
        signs=MISTRAL_SIGNS,
    ),
    Target(
        name="mistral-degrees",
        api="mistral-conversations",
        judge="mistral-chat",
        dialect="mistral",
        signs=MISTRAL_SIGNS,
        facts={"compat": {"thinkingLevelMap": {"off": "none", "high": "high"}}},
    ),
    google("gemini-2.5", "google-generative-ai", "gemini-2.5-flash"),
    google("gemini-3", "google-generative-ai", "gemini-3-flash-preview"),
    google("vertex-gemini", "google-vertex", "gemini-2.5-pro"),
    bedrock("claude", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    bedrock("nova", "us.amazon.nova-2-lite-v1:0"),
    bedrock("gpt-oss", "openai.gpt-oss-120b-1:0"),
    bedrock("titan", "amazon.titan-text-express-v1"),
    responses("openai", "https://api.openai.com/v1"),
    responses("xai", "https://api.x.ai/v1"),
    responses("azure", "https://lab.openai.azure.com/openai/v1", "azure-openai-responses"),
)
