"""Images of a session as attachments: stored once, named by entries and events, and read for the model."""

from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.events import MessageEnded, ToolEnded
from agent_core.kernel import MessageId, SessionId
from agent_core.kernel.errors import AttachmentRefused, AttachmentTooLarge
from agent_core.messages import Image, Text, UserContent, UserMessage
from agent_core.session.input.queue import Replace
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.paths import attachments_folder
from agent_core.tools import ToolResult
from agent_core.transcript.entries import Header
from tests.support.harness.clock import FakeClock
from tests.support.provider.images import PNG, PNG_BASE64
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import FunctionTool

BLOB = sha256(PNG).hexdigest()
INLINE = Image(mime="image/png", data=PNG_BASE64)
STORED = Image(mime="image/png", blob=BLOB, size=len(PNG))
SEES = replace(SCRIPTED_FACTS, images=True)


class Place:
    """Sessions in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "sessions"
        self.clock = FakeClock()
        self.store = JsonlStore(self.folder, self.clock)

    @asynccontextmanager
    async def session(
        self, model: ScriptedModel, name: str = "s-1", **more: Any
    ) -> AsyncGenerator[Bench]:
        """Open a session, a new one where there is none."""
        if await self.store.list():
            opened = await self.store.open(SessionId(name))
        else:
            header = Header(id=SessionId(name), at_ms=self.clock.now_ms(), cwd="/project")
            log = await self.store.create(header)
            opened = OpenedSession(log=log, entries=(), recovery=Recovery())
        async with bench(model, store=self.store, opened=opened, clock=self.clock, **more) as one:
            yield one

    @property
    def stored(self) -> list[Path]:
        """All files of attachments."""
        folder = attachments_folder(self.folder)
        return [path for path in folder.rglob("*") if path.is_file()]

    @property
    def text(self) -> str:
        """The session files."""
        return "".join(path.read_text("utf-8") for path in self.folder.rglob("*.jsonl"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a folder without sessions."""
    return Place(tmp_path)


def sent(model: ScriptedModel, number: int = -1) -> list[UserContent]:
    """Return the content of all user messages of a request."""
    messages = model.requests[number].messages
    return [part for one in messages if isinstance(one, UserMessage) for part in one.content]


async def test_an_image_is_named_by_entries_and_events_and_sent_with_its_bytes(
    place: Place,
) -> None:
    model = ScriptedModel([say("one"), say("two")], facts=SEES)
    async with place.session(model) as one:
        await one.session.prompt([Text(text="see"), INLINE])
        events = await one.idle()
        await one.session.prompt("again")
        await one.idle()
    said = [event.content for event in events if isinstance(event, MessageEnded)]
    assert said[0] == (Text(text="see"), STORED)
    assert sent(model, 0) == [Text(text="see"), INLINE]
    assert sent(model, 1) == [Text(text="see"), INLINE, Text(text="again")]
    assert PNG_BASE64 not in place.text
    assert [path.name for path in place.stored] == [BLOB]
    assert place.stored[0].read_bytes() == PNG


async def test_the_image_of_a_tool_is_stored_too(place: Place) -> None:
    async def look(*_: object) -> ToolResult:
        return ToolResult(content=(Text(text="a dot"), INLINE))

    model = ScriptedModel([call("look"), say("a dot")], facts=SEES)
    async with place.session(model, tools=[FunctionTool("look", look)]) as one:
        await one.session.prompt("look")
        events = await one.idle()
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert ended.content == (Text(text="a dot"), STORED)
    assert model.requests[1].messages[-1].content == (Text(text="a dot"), INLINE)  # pyright: ignore[reportAttributeAccessIssue] - a result
    assert PNG_BASE64 not in place.text


async def test_two_sessions_share_an_image_and_a_reopened_one_reads_it(
    place: Place, tmp_path: Path
) -> None:
    for name in ("s-1", "s-2"):
        other = Place(tmp_path)
        other.clock = place.clock
        header = Header(id=SessionId(name), at_ms=place.clock.now_ms(), cwd="/project")
        log = await other.store.create(header)
        opened = OpenedSession(log=log, entries=(), recovery=Recovery())
        async with bench(
            ScriptedModel([say("ok")], facts=SEES), store=other.store, opened=opened
        ) as one:
            await one.session.prompt([INLINE])
            await one.idle()
    assert [path.name for path in place.stored] == [BLOB]
    model = ScriptedModel([say("yes")], facts=SEES)
    async with place.session(model, "s-2") as one:
        await one.session.prompt("still there?")
        await one.idle()
    assert sent(model) == [INLINE, Text(text="still there?")]


async def test_a_missing_image_is_a_text_for_the_model_and_the_session_goes_on(
    place: Place,
) -> None:
    model = ScriptedModel([say("one"), say("two"), say("three")], facts=SEES)
    async with place.session(model) as one:
        await one.session.prompt([INLINE])
        await one.idle()
    place.stored[0].unlink()
    async with place.session(model) as one:
        await one.session.prompt("and now?")
        await one.idle()
        assert sent(model) == [
            Text(
                text=f"[Image omitted: the attached file (image/png, {len(PNG)}B) is no longer stored.]"
            ),
            Text(text="and now?"),
        ]
        await one.session.prompt([INLINE])
        await one.idle()
    assert sent(model) == [INLINE, Text(text="and now?"), INLINE]


async def test_a_session_with_base64_in_its_file_is_read_unchanged(place: Place) -> None:
    model = ScriptedModel([say("one"), say("two")], facts=SEES)
    async with place.session(model) as one:
        await one.session.prompt("see")
        await one.idle()
    (path,) = place.folder.rglob("*.jsonl")
    old = f'{{"type":"image","data":"{PNG_BASE64}","mimeType":"image/png"}}'
    before = path.read_text("utf-8").replace('{"type":"text","text":"see"}', old)
    assert old in before
    _ = path.write_text(before, "utf-8")
    async with place.session(model) as one:
        await one.session.prompt("again")
        await one.idle()
    assert sent(model) == [INLINE, Text(text="again")]
    assert path.read_text("utf-8").startswith(before)
    assert place.stored == []


async def test_an_image_of_11_mib_is_refused_and_nothing_is_stored(place: Place) -> None:
    large = b64encode(PNG[:8] + bytes(11 << 20)).decode()
    model = ScriptedModel([], facts=SEES)
    async with place.session(model) as one:
        with pytest.raises(AttachmentTooLarge) as refused:
            await one.session.prompt([Image(mime="image/png", data=large)])
        assert str(refused.value) == (
            "The image is larger than 10.0MB, the limit for an attached image; make it smaller."
        )
        with pytest.raises(AttachmentRefused, match="send its bytes first"):
            await one.session.prompt([Image(mime="image/png", blob="0" * 64)])
    assert place.text == ""
    assert place.stored == []


async def test_the_type_of_an_image_is_that_of_its_bytes(place: Place) -> None:
    model = ScriptedModel([say("ok")], facts=SEES)
    heic = Image(mime="image/heic", data="AAAA")
    async with place.session(model) as one:
        await one.session.prompt([Image(mime="image/jpeg", data=PNG_BASE64), heic])
        await one.idle()
    assert sent(model) == [INLINE, heic]


async def test_an_image_that_waits_in_the_queue_is_stored(place: Place) -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *say("one")), say("two")], facts=SEES)
    async with place.session(model) as one:
        await one.session.prompt("go")
        await gate.reached.wait()
        receipt = await one.session.follow_up("see")
        assert receipt.queue_id is not None
        (item,) = await one.session.queue.edit(
            [Replace(queue_id=receipt.queue_id, content=(INLINE,))]
        )
        assert item.content == (STORED,)
        gate.release()
        await one.idle()
    assert sent(model) == [Text(text="go"), INLINE]
    assert PNG_BASE64 not in place.text


async def test_a_prompt_with_an_image_that_is_sent_twice_at_once_is_accepted_once(
    place: Place,
) -> None:
    model = ScriptedModel([say("one")], facts=SEES)
    accepted: list[str] = []
    async with place.session(model) as one:

        async def send() -> None:
            receipt = await one.session.prompt([INLINE], message_id=MessageId("m"))
            accepted.append(receipt.accepted)

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            group.start_soon(send)
        await one.idle()
    assert sorted(accepted) == ["duplicate", "started"]
    assert len(model.requests) == 1


async def test_a_session_in_memory_holds_its_images() -> None:
    model = ScriptedModel([say("ok")], facts=SEES)
    async with bench(model) as one:
        await one.session.prompt([INLINE])
        await one.idle()
        with pytest.raises(AttachmentRefused, match="only in memory"):
            await one.session.prompt([STORED])
    assert sent(model) == [INLINE]


async def test_a_full_disk_keeps_the_result_of_a_tool_in_its_entry(place: Place) -> None:
    async def look(*_: object) -> ToolResult:
        return ToolResult(content=(INLINE,))

    place.folder.parent.mkdir(exist_ok=True)
    # A file in the place of the folder refuses every write below it.
    _ = attachments_folder(place.folder).write_text("")
    model = ScriptedModel([call("look"), say("a dot")], facts=SEES)
    async with place.session(model, tools=[FunctionTool("look", look)]) as one:
        await one.session.prompt("look")
        await one.idle()
    assert PNG_BASE64 in place.text
    assert model.requests[1].messages[-1].content == (INLINE,)  # pyright: ignore[reportAttributeAccessIssue] - a result
