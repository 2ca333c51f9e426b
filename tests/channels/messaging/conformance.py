"""The suite for every adapter of a chat platform: a subclass of `ChannelConformance` with a fixture `world` runs it.

The world is the adapter before a platform of tests, over real sockets where the platform has any.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Literal, Protocol

import pytest

from agent_core.channels.messaging.port import (
    ApprovalOption,
    ApprovalPrompt,
    ChatAttachment,
    ClickReply,
    ConnectionState,
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
    InboundClick,
    InboundMessage,
    InboundRecall,
    MessagingChannel,
    Settlement,
    Target,
)

FaultKind = Literal["delayed", "uncertain", "applied", "impossible"]
WITHIN_S = 10.0
PROMPT = ApprovalPrompt(
    request="p-1",
    title="Run npm install",
    risk="high",
    body="```\nnpm install\n```",
    detail="shop · command",
    options=(
        ApprovalOption(id="once", label="Allow once", style="primary"),
        ApprovalOption(id="deny", label="Deny", style="danger"),
    ),
    digest="0123456789abcdef",
    code="7f3a",
)
SETTLED = Settlement(label="Allowed once", by="Ann", at_ms=1_795_000_000_000, allowed=True)


class ChannelWorld(Protocol):
    """An adapter before a platform of tests."""

    @property
    def channel(self) -> MessagingChannel:
        """The adapter."""
        ...

    @property
    def target(self) -> Target:
        """A chat in which the bot is."""
        ...

    def write(self, text: str, *, file: bytes | None = None) -> str:
        """Write a message of a person in the chat; return its id."""
        ...

    def repeat(self, message: str) -> None:
        """Deliver a message again, as platforms do."""
        ...

    def recall(self, message: str) -> None:
        """Withdraw a message of a person."""
        ...

    async def click(self, message: str, option: str) -> str:
        """Click a button of a message; return the text that the person sees."""
        ...

    def fail(self, kind: FaultKind) -> None:
        """Refuse or lose the next call that sends something; `applied`: it is lost after it was applied."""
        ...

    def texts(self) -> list[str]:
        """Return the texts of the messages of the bot as people see them, oldest first."""
        ...

    def reactions(self, message: str) -> int:
        """Return the number of reactions of the bot to a message."""
        ...

    def has_buttons(self, message: str) -> bool:
        """Return whether a message of the bot has buttons now."""
        ...


class CollectingSink:
    """A receiver that keeps what it is sent."""

    def __init__(self) -> None:
        self.events: list[InboundMessage | InboundRecall] = []
        self.clicks: list[InboundClick] = []
        self.states: list[ConnectionState] = []

    async def receive(self, event: InboundMessage | InboundRecall) -> None:
        self.events.append(event)

    async def click(self, event: InboundClick) -> ClickReply:
        self.clicks.append(event)
        return ClickReply(text="Recorded", kind="success", prompt=PROMPT, settlement=SETTLED)

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        assert (state == "connected") is (reason == "") or state in {"connecting", "stopped"}
        self.states.append(state)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - a platform sets no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def connected(world: ChannelWorld) -> AsyncGenerator[CollectingSink]:
    """Run the receiving side for as long as the block."""
    sink = CollectingSink()
    task = asyncio.get_running_loop().create_task(world.channel.run(sink))
    try:
        await until(lambda: sink.states[-1:] == ["connected"])
        yield sink
    finally:
        task.cancel()
        await asyncio.wait([task])


class ChannelConformance:
    """Rules that every adapter keeps."""

    async def test_a_message_is_received_with_its_author_place_and_text(
        self, world: ChannelWorld
    ) -> None:
        async with connected(world) as sink:
            key = world.write("hello *you*")
            await until(lambda: sink.events)
            (event,) = sink.events
            assert isinstance(event, InboundMessage)
            assert (event.key, event.target, event.text) == (key, world.target, "hello *you*")
            assert event.sender.id
            assert not event.sender.is_bot
            assert event.at_ms > 0

    async def test_a_repeated_message_has_the_same_key(self, world: ChannelWorld) -> None:
        async with connected(world) as sink:
            key = world.write("hello")
            world.repeat(key)
            await until(lambda: sink.events)
            assert {event.key for event in sink.events} == {key}

    async def test_a_withdrawal_names_its_message(self, world: ChannelWorld) -> None:
        async with connected(world) as sink:
            key = world.write("oops")
            world.recall(key)
            await until(lambda: len(sink.events) == 2)
            assert isinstance(sink.events[1], InboundRecall)
            assert sink.events[1].message == key

    async def test_a_text_is_shown_and_a_repeated_key_shows_it_once(
        self, world: ChannelWorld
    ) -> None:
        first = await world.channel.post(world.target, "done", key="k-1")
        assert await posted_again(world, "done", key="k-1") == first.message
        assert world.texts() == ["done"]

    @pytest.mark.parametrize(
        ("kind", "error"),
        [
            ("delayed", DeliveryDelayed),
            ("uncertain", DeliveryUncertain),
            ("applied", DeliveryUncertain),
            ("impossible", DeliveryImpossible),
        ],
    )
    async def test_a_failure_has_its_class_and_a_repetition_shows_the_text_once(
        self, world: ChannelWorld, kind: FaultKind, error: type[DeliveryError]
    ) -> None:
        world.fail(kind)
        with pytest.raises(error):
            await world.channel.post(world.target, "done", key="k-1")
        assert world.texts() == (["done"] if kind == "applied" else [])
        await posted_again(world, "done", key="k-1")
        assert world.texts() == ["done"]

    async def test_a_text_of_the_longest_size_is_shown_whole(self, world: ChannelWorld) -> None:
        text = ("é" * 99 + "\n") * (world.channel.capabilities.text_bytes // 200)
        assert len(text.encode()) <= world.channel.capabilities.text_bytes
        await world.channel.post(world.target, text, key="k-1")
        assert [shown.rstrip("\n") for shown in world.texts()] == [text.rstrip("\n")]

    async def test_a_sent_message_is_found_by_its_key_where_there_is_a_history(
        self, world: ChannelWorld
    ) -> None:
        if not world.channel.capabilities.history:
            pytest.skip("the platform has no history")
        sent = await world.channel.post(world.target, "done", key="k-1")
        found = await world.channel.find_sent(world.target, key="k-1", since_ms=0)
        assert found == sent.message
        assert await world.channel.find_sent(world.target, key="k-2", since_ms=0) is None

    async def test_the_history_has_the_messages_of_people_as_they_are_received(
        self, world: ChannelWorld
    ) -> None:
        if not world.channel.capabilities.history:
            pytest.skip("the platform has no history")
        async with connected(world) as sink:
            keys = [world.write(text) for text in ("one", "two")]
            await world.channel.post(world.target, "ours", key="k-1")
            await until(lambda: len(sink.events) == 2)
            read = await world.channel.history(world.target, since_ms=0)
            assert [message.key for message in read] == keys
            assert [message.text for message in read] == ["one", "two"]

    async def test_a_file_of_a_message_is_read_up_to_a_limit(self, world: ChannelWorld) -> None:
        content = bytes(range(256)) * 20
        async with connected(world) as sink:
            world.write("look", file=content)
            await until(lambda: sink.events)
            (event,) = sink.events
            assert isinstance(event, InboundMessage)
            (attachment,) = event.attachments
            assert await read(world, attachment, limit_bytes=len(content)) == content
            with pytest.raises(DeliveryError):
                await read(world, attachment, limit_bytes=len(content) - 1)

    async def test_a_growing_answer_shows_each_whole_text_and_its_end(
        self, world: ChannelWorld
    ) -> None:
        answer = await world.channel.open_answer(world.target, key="k-1")
        for text in ("a", "ab", "abab", "x = 1\n1\n", "foo()()"):
            await answer.set_text(text)
            assert world.texts() == [text]
        await answer.finish("foo()()()", "completed")
        assert world.texts() == ["foo()()()"]

    async def test_an_answer_is_gone_on_with_by_its_token(self, world: ChannelWorld) -> None:
        answer = await world.channel.open_answer(world.target, key="k-1")
        await answer.set_text("half")
        again = await world.channel.open_answer(
            world.target, key="k-1", resume_token=answer.resume_token
        )
        assert again.sent.message == answer.sent.message
        await again.finish("whole", "aborted")
        assert world.texts() == ["whole"]

    async def test_a_click_names_request_option_and_digest_and_its_answer_is_shown(
        self, world: ChannelWorld
    ) -> None:
        async with connected(world) as sink:
            sent = await world.channel.ask(world.target, PROMPT, key="k-1")
            assert world.has_buttons(sent.message)
            # As a text for the person, or as the redrawn message.
            assert await world.click(sent.message, "once") in {"Recorded", SETTLED.label}
            (click,) = sink.clicks
            assert (click.request, click.option, click.digest) == (
                PROMPT.request,
                "once",
                PROMPT.digest,
            )
            assert (click.message, click.target.chat) == (sent.message, world.target.chat)

    async def test_an_approval_that_is_settled_has_no_buttons(self, world: ChannelWorld) -> None:
        sent = await world.channel.ask(world.target, PROMPT, key="k-1")
        for _ in range(2):
            await world.channel.settle(world.target, sent.message, PROMPT, SETTLED)
            assert not world.has_buttons(sent.message)

    async def test_a_reaction_takes_the_place_of_the_former_one(self, world: ChannelWorld) -> None:
        key = world.write("go")
        for reaction in ("started", "completed", "completed"):
            await world.channel.react(key, reaction)
            assert world.reactions(key) == 1

    async def test_receiving_ends_when_it_is_cancelled_and_begins_again(
        self, world: ChannelWorld
    ) -> None:
        for number in range(2):
            async with connected(world) as sink:
                world.write(f"number {number}")
                await until(lambda sink=sink: sink.events)


async def posted_again(world: ChannelWorld, text: str, *, key: str) -> str:
    """Repeat a message as the sender does: a platform that does not recognise keys is asked for its history first."""
    if world.channel.capabilities.key_window_s == 0:
        found = await world.channel.find_sent(world.target, key=key, since_ms=0)
        if found is not None:
            return found
    return (await world.channel.post(world.target, text, key=key)).message


async def read(world: ChannelWorld, attachment: ChatAttachment, *, limit_bytes: int) -> bytes:
    return b"".join(
        [chunk async for chunk in world.channel.fetch(attachment, limit_bytes=limit_bytes)]
    )
