"""What a request asked for: its API, whether it streams, and the words that the model was told last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.support.provider.script import Json

Api = Literal["openai", "responses", "anthropic", "ollama"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A model request, as far as the answer depends on it."""

    number: int
    """1 for the first model request that this provider got."""
    api: Api
    model: str
    heard: str
    prompt_tokens: int
    include_usage: bool


def api_of(path: str) -> Api | None:
    """Tell which API a path belongs to; any base path is taken."""
    if path.endswith("/chat/completions"):
        return "openai"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/api/chat"):
        return "ollama"
    return None


def read_request(body: Json, *, api: Api, number: int, size: int) -> Asked:
    """Read a decoded request body of `size` bytes."""
    options = body.get("stream_options")
    return Asked(
        number=number,
        api=api,
        model=str(body.get("model", "")),
        heard=_heard(body.get("input" if api == "responses" else "messages")),
        prompt_tokens=size // 4,
        include_usage=isinstance(options, Mapping) and bool(options.get("include_usage")),
    )


def _heard(messages: object) -> str:
    """Join the texts after the model's own last message: prompts, steering and tool results."""
    if not isinstance(messages, list):
        return ""
    texts: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, Mapping) or message.get("role") == "assistant":
            break
        if message.get("role") not in {"system", "developer"}:
            texts.append(_text(message.get("content")))
    return "\n".join(reversed(texts))


def _text(content: object) -> str:
    """Give the text of a content: a string, or blocks with `text` or, for tool results, with `content`."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(block) for block in content)
    if isinstance(content, Mapping):
        return _text(content.get("text", content.get("content")))
    return ""
