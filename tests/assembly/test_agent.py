"""The whole agent without an editor: real tools and files, a provider on the loopback, the cases of the reference."""

import json
import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agent_core import AgentSession, create_session
from agent_core.events import (
    CompactionStarted,
    Event,
    RetryEnded,
    RunEnded,
    ToolEnded,
    ToolOutputDelta,
    ToolRunning,
)
from agent_core.kernel.errors import SessionBusy
from agent_core.messages import ToolResultMessage, text_of
from agent_core.resources.settings.values import SettingsValues
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider, write_config
from tests.support.workspace.processes import processes_with, wait_gone

PATH = "/usr/bin:/bin"
NO_RETRY = {"retry": {"enabled": False}}
QUICK = {"retry": {"baseDelayMs": 1}}


class Ground:
    """A workspace, a provider and the settings between them."""

    def __init__(self, root: Path, dirs: TillerDirs, provider: LoopbackProvider) -> None:
        self.root = root
        self.dirs = dirs
        self.provider = provider
        self.asked = 0

    def open(self, *turns: dict[str, Any], **settings: Any) -> AbstractAsyncContextManager[Any]:
        chosen = {"permission": {"mode": "yolo"}, "steer": {"graceS": 0}, **settings}
        write_config(self.dirs.config, self.provider, settings=chosen)
        self.provider.script(turns)
        self.asked = len(self.provider.requests)
        mark = {"FLASK_APP": str(self.root)}
        env = {"PATH": PATH, **mark, **self.dirs.variables()}
        return create_session(workspace=self.root, env=env, trusted=True)

    def requests(self) -> list[list[dict[str, Any]]]:
        """Give the messages of each request since `open`, without the system prompt."""
        return [
            [m for m in one["body"]["messages"] if m["role"] not in {"system", "developer"}]
            for one in self.provider.requests[self.asked :]
        ]

    async def commands(self, *marks: str, at_least: int = 1) -> set[int]:
        """Wait for processes that a tool of this test started."""
        return await anyio.to_thread.run_sync(
            lambda: processes_with(
                f"FLASK_APP={self.root}", *marks, below=os.getpid(), at_least=at_least
            )
        )


@pytest.fixture
def ground(tmp_path: Path, tiller_dirs: TillerDirs, lab: LoopbackProvider) -> Ground:
    root = tmp_path / "work"
    root.mkdir()
    return Ground(root, tiller_dirs, lab)


def calls(*named: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": args} for name, args in named], **more}


def results(session: AgentSession) -> list[str]:
    found = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
    return [text_of(m.content) for m in found]


def tool_texts(messages: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]


def pairing_problems(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Find what a provider would refuse: a call without its one result after it, a result without its call."""
    problems: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in open_calls:
                open_calls.remove(message["tool_call_id"])
            else:
                problems.append(f"orphan {message['tool_call_id']}")
            continue
        problems += [f"unanswered {one}" for one in open_calls]
        open_calls = [one["id"] for one in message.get("tool_calls") or ()]
    return problems + [f"unanswered {one}" for one in open_calls]


async def ask(session: AgentSession, words: str) -> RunEnded:
    """Say something, and give the end of the run."""
    reader = session.subscribe()
    await session.prompt(words)
    await session.wait_idle()
    events = [one.event for one in reader.take_now()]
    reader.close()
    (ended,) = [one for one in events if isinstance(one, RunEnded)]
    return ended


async def until(reader: Any, kind: type[Event]) -> None:
    with anyio.fail_after(10):
        while not any(isinstance(one.event, kind) for one in await reader.take()):
            pass


async def test_plain_words_are_answered(ground: Ground) -> None:
    async with ground.open({"text": "你好!"}) as session:
        assert (await ask(session, "hello")).status == "completed"
        assert text_of(session.info.messages[-1].content) == "你好!"


async def test_a_file_is_read_and_the_answer_can_use_it(ground: Ground) -> None:
    (ground.root / "test.txt").write_text("the secret word is pear\n", encoding="utf-8")
    turns = (calls(("read", {"path": "test.txt"})), {"text": "It says pear.", "when": "pear"})
    async with ground.open(*turns) as session:
        assert (await ask(session, "读取 test.txt")).status == "completed"
        assert results(session) == ["the secret word is pear\n"]
        assert text_of(session.info.messages[-1].content) == "It says pear."


async def test_a_file_is_read_and_then_edited(ground: Ground) -> None:
    file = ground.root / "test.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    edit = {"path": "test.txt", "edits": [{"oldText": "two", "newText": "TWO"}]}
    turns = (
        calls(("read", {"path": "test.txt"})),
        calls(("edit", edit), ("bash", {"command": "cat test.txt"})),
        {"text": "done"},
    )
    async with ground.open(*turns) as session:
        ended = await ask(session, "change two")
        assert (ended.status, ended.changes.files) == ("completed", 1)
        assert file.read_text("utf-8") == "one\nTWO\n"
        assert results(session)[2] == "one\nTWO\n"


async def test_steering_ends_a_running_command_and_skips_the_rest(ground: Ground) -> None:
    turns = (
        calls(("bash", {"command": "sleep 30"}), ("write", {"path": "never", "content": "x"})),
        {"text": "understood"},
    )
    async with ground.open(*turns) as session:
        await session.prompt("go")
        sleeping = await ground.commands("sleep")
        assert (await session.steer("stop, do something else")).accepted == "steered"
        with anyio.fail_after(10):
            await session.wait_idle()
        first, second = results(session)
        assert first.endswith("Interrupted: the user sent a new message while this ran.")
        assert second == "Skipped due to queued user message"
        assert await anyio.to_thread.run_sync(wait_gone, sleeping) == set()
        assert not (ground.root / "never").exists()
        assert ground.requests()[1][-1]["content"] == "stop, do something else"


async def test_a_follow_up_goes_on_with_what_was_said(ground: Ground) -> None:
    turns = ({"text": "first answer", "delta_delay_s": 0.05}, {"text": "second answer"})
    async with ground.open(*turns) as session:
        await session.prompt("first question")
        assert (await session.follow_up("second question")).accepted == "queued"
        await session.wait_idle()
        said = [m["content"] for m in ground.requests()[1]]
        assert said == ["first question", "first answer", "second question"]


async def test_an_abort_kills_every_child_and_leaves_no_half_written_file(ground: Ground) -> None:
    command = "(trap '' TERM; sleep 301) & setsid sleep 302 & echo begun; sleep 303"
    async with ground.open(calls(("bash", {"command": command})), {"text": "x"}) as session:
        before = set(ground.root.iterdir())
        reader = session.subscribe()
        await session.prompt("go")
        await until(reader, ToolOutputDelta)
        reader.close()
        children = await ground.commands("sleep", at_least=3)
        result = await session.abort()
        assert (result.status, result.timed_out, result.survivors) == ("cancelled", False, ())
        assert await anyio.to_thread.run_sync(wait_gone, children) == set()
        assert set(ground.root.iterdir()) == before
        assert [one.replace("Terminated\n", "") for one in results(session)] == [
            "begun\n\nCommand aborted"
        ]


async def test_of_two_prompts_at_once_one_is_refused_and_nothing_is_mixed_up(
    ground: Ground,
) -> None:
    async with ground.open({"text": "streaming", "delta_delay_s": 0.05}, {"text": "b"}) as session:
        await session.prompt("one")
        with pytest.raises(SessionBusy):
            await session.prompt("two", delivery="reject")
        await session.wait_idle()
        assert len(ground.requests()) == 1
        assert [text_of(m.content) for m in session.info.messages] == ["one", "streaming"]


async def test_the_next_run_knows_what_a_tool_of_the_first_gave(ground: Ground) -> None:
    (ground.root / "a.txt").write_text("alpha\n", encoding="utf-8")
    turns = (calls(("read", {"path": "a.txt"})), {"text": "read it"}, {"text": "alpha"})
    async with ground.open(*turns) as session:
        await ask(session, "read a.txt")
        await ask(session, "what was in it?")
        last = ground.requests()[-1]
        assert [text for _, text in tool_texts(last)] == ["alpha\n"]
        assert pairing_problems(last) == []


async def test_calls_that_were_interrupted_are_answered_for_the_next_request(
    ground: Ground,
) -> None:
    turns = (
        calls(("bash", {"command": "echo done"}), ("bash", {"command": "sleep 30"})),
        {"text": "fine"},
    )
    async with ground.open(*turns) as session:
        await session.prompt("go")
        await ground.commands("sleep")
        await session.abort()
        assert (await ask(session, "next")).status == "completed"
        last = ground.requests()[-1]
        assert pairing_problems(last) == []
        (_, first), (_, second) = tool_texts(last)
        assert first == "done\n"
        # The shell may say "Terminated" first: its child is sometimes gone before it is.
        assert second.removeprefix("Terminated\n\n") == "Command aborted"


async def test_three_results_belong_to_their_calls(ground: Ground) -> None:
    for name in "ABC":
        (ground.root / name).write_text(f"content of {name}\n", encoding="utf-8")
    reads = [{"name": "read", "arguments": {"path": name}, "id": f"call_{name}"} for name in "ABC"]
    async with ground.open({"tool_calls": reads}, {"text": "ok"}) as session:
        await ask(session, "read A, B and C")
        assert tool_texts(ground.requests()[-1]) == [
            (f"call_{name}", f"content of {name}\n") for name in "ABC"
        ]


async def test_a_run_with_a_retry_is_over_only_when_its_tools_are(ground: Ground) -> None:
    turns = (
        {"status": 500, "body": {"error": {"message": "overloaded"}}},
        calls(("bash", {"command": "echo from the tool"})),
        {"text": "done"},
    )
    async with ground.open(*turns, **QUICK) as session:
        reader = session.subscribe()
        await session.prompt("go")
        result = await session.wait_idle()
        assert result is not None
        assert (result.status, result.text) == ("completed", "done")
        told = [
            type(one.event)
            for one in reader.take_now()
            if isinstance(one.event, RetryEnded | ToolRunning | ToolEnded | RunEnded)
        ]
        assert told == [RetryEnded, ToolRunning, ToolEnded, RunEnded]


async def test_a_connection_that_drops_in_an_answer_ends_the_run_and_not_the_session(
    ground: Ground,
) -> None:
    """The third piece of the answer is the last that comes."""
    cut = {"text": "x" * 4000, "deltas": 40, "cut_after_bytes": 1_000}
    async with ground.open(cut, {"text": "again"}, **NO_RETRY) as session:
        with anyio.fail_after(10):
            ended = await ask(session, "go")
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "ModelError")
        assert session.info.snapshot().state == "idle"
        partial = session.info.messages[-1]
        assert 0 < len(text_of(partial.content)) < 4000
        assert (await ask(session, "once more")).status == "completed"


@pytest.mark.parametrize(
    "turn",
    [
        {"text": "some words here", "malformed": 'data: {"choices": [{"delta": {"content": "cu\n\n'},
        {"text": "some words here", "malformed": "data: this is no json\n\n"},
        {"body": "<html>Bad gateway</html>"},
        {"body": '{"id": "x", "choices": [{"mess'},
    ],
    ids=["cut-event", "text-event", "html", "cut-body"],
)  # fmt: skip
async def test_an_answer_that_is_no_json_is_told_and_the_session_goes_on(
    ground: Ground, turn: dict[str, Any]
) -> None:
    async with ground.open(turn, {"text": "again"}, **NO_RETRY) as session:
        ended = await ask(session, "go")
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "ModelError")
        assert "Traceback" not in ended.error.message
        assert (await ask(session, "once more")).status == "completed"


async def test_a_wrong_order_of_thoughts_is_not_taken_for_a_full_context(ground: Ground) -> None:
    message = (
        "messages.1.content.0: if `thinking` is enabled a final assistant message must start with a thinking block; "
        "max_tokens must be greater than budget_tokens"
    )
    body = {"error": {"type": "invalid_request_error", "message": message}}
    async with ground.open({"status": 400, "body": body, "repeat": 3}) as session:
        reader = session.subscribe()
        ended = await ask(session, "go")
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "ModelError")
        assert not any(isinstance(one.event, CompactionStarted) for one in reader.take_now())


async def test_too_many_requests_are_waited_out_and_never_compacted(ground: Ground) -> None:
    limited = {"status": 429, "body": {"error": {"message": "Too Many Requests"}}}
    async with ground.open(limited, {"text": "ok"}, **QUICK) as session:
        reader = session.subscribe()
        assert (await ask(session, "go")).status == "completed"
        events = [one.event for one in reader.take_now()]
        assert [one.success for one in events if isinstance(one, RetryEnded)] == [True]
        assert not any(isinstance(one, CompactionStarted) for one in events)


async def test_a_stream_that_falls_silent_is_given_up(ground: Ground) -> None:
    assert SettingsValues().stream.idle_timeout_s == 30
    stall = {"text": "one two three four", "deltas": 4, "stall_forever_after_deltas": 2}
    settings = {**NO_RETRY, "stream": {"idleTimeoutS": 0.3}}
    async with ground.open(stall, {"text": "again"}, **settings) as session:
        with anyio.fail_after(10):
            ended = await ask(session, "go")
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "ModelError")
        assert "0.3 s" in ended.error.message
        assert (await ask(session, "once more")).status == "completed"


async def test_a_file_that_vanishes_while_it_is_read_is_a_result(ground: Ground) -> None:
    """The nearest that the disk can do on order: a link whose target is gone when it is opened."""
    (ground.root / "gone.txt").symlink_to(ground.root / "target.txt")
    turns = (calls(("read", {"path": "gone.txt"})), {"text": "it is not there"})
    async with ground.open(*turns) as session:
        assert (await ask(session, "read it")).status == "completed"
        assert "ENOENT" in results(session)[0]


async def test_a_wrong_key_is_told_at_once(ground: Ground) -> None:
    body = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
    async with ground.open({"status": 401, "body": body, "repeat": 5}) as session:
        reader = session.subscribe()
        ended = await ask(session, "go")
        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "AuthRequired")
        assert len(ground.requests()) == 1
        events = [one.event for one in reader.take_now()]
        assert not any(isinstance(one, CompactionStarted | RetryEnded) for one in events)


async def test_the_file_of_a_session_can_be_read_line_by_line(ground: Ground) -> None:
    async with ground.open(calls(("bash", {"command": "echo hi"})), {"text": "x"}) as session:
        await ask(session, "go")
        location = session.info.location
    text = await anyio.Path(location or "").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    roles = [line["message"]["role"] for line in lines if line["type"] == "message"]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
