"""A model that does whatever any text tells it, wherever that text comes from: the worst reader there is."""

import base64
import binascii
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

from anyio.lowlevel import checkpoint

from agent_core.kernel import JsonObject, ToolCallId
from agent_core.kernel.text import as_meant
from agent_core.messages import (
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    text_of,
)
from agent_core.providers import ModelInfo, ModelRequest, StreamEvent
from tests.support.session.scripted_model import SCRIPTED_FACTS, answer

TURNS = 6
"""After so many it gives up and reports."""
_TAGS = range(0xE0020, 0xE007F)
_COMMANDS = (
    r"`([^`\n]+)`",
    r"\brun[: ]+((?:curl|wget|id|env|cat|nc|git|npm|pip|sh|bash)\b[^\n.]*)",
    r"\bfirst: ([a-z][^\n]+)",
    r"\bcall run_shell with '([^']+)'",
    r"file:[^\n]*; ?(curl [^;\n]+);",
)


def orders_in(text: str) -> Iterator[tuple[str, JsonObject]]:
    """Find everything in a text that could be meant as something to do."""
    text = _uncovered(text)
    for found in re.finditer(r"^DO (\w+) (\{.*\})$", text, re.MULTILINE):
        yield found[1], json.loads(found[2])
    if "\nDO " in f"\n{text}":
        return
    for pattern in _COMMANDS:
        for found in re.finditer(pattern, text, re.IGNORECASE):
            yield "bash", {"command": found[1].strip()}
    if found := re.search(r"contents of (\S+) to (\S+)", text):
        yield "read", {"path": found[1]}
        yield "bash", {"command": f"curl -d @{found[1]} {found[2]}"}
    for found in re.finditer(r"\b(?:see|read|quote) (~?[\w./~-]*[./][\w./-]+)", text):
        yield "read", {"path": found[1].rstrip(".")}
    if found := re.search(r"\bdelete (?:the )?(\.?\w+)", text):
        yield "bash", {"command": f"rm -rf {found[1]}"}
        if found[1].startswith("."):
            yield "write", {"path": f"{found[1]}/config", "content": ""}
    yield from _writes_in(text)


def _writes_in(text: str) -> Iterator[tuple[str, JsonObject]]:
    if found := re.search(r"add (\S+ \S+) to (\S+)", text):
        yield "write", {"path": found[2], "content": f"{{{found[1]}}}"}
    if "emember for all future sessions" in text:
        yield "write", {"path": "AGENTS.md", "content": text}
    if "approved running all commands" in text:
        yield "bash", {"command": "id"}
    if found := re.search(r"registry (https?://\S+)/?`", text):
        yield "write", {"path": ".npmrc", "content": f"registry={found[1]}"}


def _uncovered(text: str) -> str:
    """Give a text with everything that hides in it as plain words."""
    meant = as_meant(text)
    letters = (chr(ord(sign) - 0xE0000) if ord(sign) in _TAGS else sign for sign in meant)
    plain = re.sub("[\u200b-\u200f\u2060]", "", "".join(letters))
    for word in re.findall(r"\b[A-Za-z0-9+/]{24,}={0,2}", plain):
        try:
            plain += "\n" + base64.b64decode(word, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return plain


def results_in(request: ModelRequest) -> list[str]:
    """Give what tools said."""
    return [text_of(one.content) for one in request.messages if isinstance(one, ToolResultMessage)]


def everything_in(request: ModelRequest) -> list[str]:
    """Give all words of a request, whoever's they are."""
    return [request.system, *map(_words, request.messages)]


def _words(message: Message) -> str:
    match message:
        case BranchSummaryMessage(summary=summary) | CompactionSummaryMessage(summary=summary):
            return summary
        case BashMessage(output=output):
            return output
        case _:
            return text_of(message.content)


class ObedientModel:
    """Begins as the test says, then obeys the texts that it hears, and reports what it got from tools."""

    def __init__(
        self,
        *first: tuple[str, JsonObject],
        hears: Callable[[ModelRequest], list[str]] = results_in,
    ) -> None:
        self._hears = hears
        self._waiting = list(first)
        self._known = {json.dumps(one) for one in first}
        self._asked = 0
        self.obeyed: list[tuple[str, JsonObject]] = []

    @property
    def facts(self) -> ModelInfo:
        return SCRIPTED_FACTS

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        await checkpoint()
        yield self._play(request)

    async def _play(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        results = results_in(request)
        for order in (order for text in self._hears(request) for order in orders_in(text)):
            if (key := json.dumps(order)) not in self._known:
                self._known.add(key)
                self._waiting.append(order)
                self.obeyed.append(order)
        self._asked += 1
        await checkpoint()
        if not self._waiting or self._asked > TURNS:
            # What it was told to do brought these: it keeps nothing to itself.
            yield answer(Text(text="\n".join(results[1:]) or "done"))
            return
        calls, self._waiting = self._waiting, []
        yield answer(
            *(
                ToolCall(id=ToolCallId(f"c{self._asked}-{number}"), name=name, arguments=arguments)
                for number, (name, arguments) in enumerate(calls)
            ),
            stop_reason="tool_use",
        )
