"""Words with a slash run commands, or are written out for the model; in the file they stay as they were said."""

from collections.abc import Sequence
from dataclasses import replace

import anyio

from agent_core.events import ExtensionError, RunStarted
from agent_core.hooks import Hook, HookTable, InputReplaced, InputTyped
from agent_core.kernel import MessageId
from agent_core.messages import Image, Text, UserMessage, text_of
from agent_core.resources.load_result import LoadedResources
from agent_core.resources.offers import CommandSource, Completion, SlashCommand, SlashInvocation
from agent_core.transcript.entries import MessageEntry
from tests.support.session.scripted_model import SCRIPTED_FACTS, ScriptedModel, say
from tests.support.session.sessions import Bench, bench


class Brought:
    """Commands of an extension."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []
        self.go_on = anyio.Event()

    def commands(self) -> Sequence[SlashCommand]:
        return tuple(
            SlashCommand(name=name, source="extension") for name in ("todo", "slow", "fix")
        )

    async def complete(self, name: str, prefix: str) -> Sequence[Completion]:
        return (Completion(value=f"{name} {prefix}!"),)

    async def run(self, name: str, arguments: str) -> None:
        if name == "slow":
            await self.go_on.wait()
        self.ran.append((name, arguments))
        if arguments == "break":
            raise ValueError("broken")


class Shelf:
    """One template, `/fix`, and one skill."""

    def commands(self) -> Sequence[SlashCommand]:
        return (
            SlashCommand(name="fix", source="prompt", description="shadowed"),
            SlashCommand(name="mend", source="prompt"),
        )

    def look_also(self, *, skills: Sequence[str], prompts: Sequence[str]) -> None:
        pass

    def own_commands(self) -> Sequence[CommandSource]:
        return ()

    async def reload(self) -> LoadedResources:
        return LoadedResources()

    async def refresh(self) -> tuple[str, ...]:
        return ("something is wrong with a skill",)

    async def expand(self, said: SlashInvocation) -> str | None:
        return f"Mend {said.arguments}." if said.name == "mend" else None


def bring(one: Bench, brought: Brought) -> None:
    """Bring commands as assembly does with those of extensions."""
    one.session.resources._commands.sources.append(brought)


def told(model: ScriptedModel) -> list[str]:
    return [
        text_of(one.content) for one in model.requests[-1].messages if isinstance(one, UserMessage)
    ]


def kept(one: Bench) -> list[str]:
    entries = (entry for entry in one.session.info.entries if isinstance(entry, MessageEntry))
    said = (entry.message for entry in entries if isinstance(entry.message, UserMessage))
    return [text_of(message.content) for message in said]


async def test_a_command_runs_beside_and_is_no_part_of_the_conversation() -> None:
    model, brought = ScriptedModel([]), Brought()
    async with bench(model, templates=Shelf()) as one:
        bring(one, brought)
        receipt = await one.session.prompt("/slow  a b ")
        assert (receipt.accepted, receipt.run) == ("handled", None)
        assert brought.ran == []
        brought.go_on.set()
        with anyio.fail_after(5):
            while not brought.ran:
                await anyio.lowlevel.checkpoint()
        assert brought.ran == [("slow", "a b")]
        assert not [event for event in one.seen() if isinstance(event, RunStarted)]
        assert one.session.info.entries == ()


async def test_one_can_wait_until_no_command_runs() -> None:
    brought = Brought()
    async with bench(ScriptedModel([])) as one, anyio.create_task_group() as group:
        bring(one, brought)
        await one.session.resources.settled()
        await one.session.prompt("/slow")
        await one.session.prompt("/todo break")
        group.start_soon(one.session.resources.settled)
        await anyio.wait_all_tasks_blocked()
        assert brought.ran == [("todo", "break")]
        brought.go_on.set()
        await one.session.resources.settled()
        assert brought.ran[-1] == ("slow", "")


async def test_the_same_message_runs_a_command_once() -> None:
    brought = Brought()
    async with bench(ScriptedModel([])) as one:
        bring(one, brought)
        receipts = [
            await one.session.prompt("/todo", message_id=MessageId("m-1")) for _ in range(2)
        ]
        await anyio.wait_all_tasks_blocked()
    assert [receipt.accepted for receipt in receipts] == ["handled", "duplicate"]
    assert brought.ran == [("todo", "")]


async def test_a_command_that_fails_is_told_and_ends_nothing() -> None:
    async with bench(ScriptedModel([say("hi")])) as one:
        bring(one, Brought())
        await one.session.prompt("/todo break")
        failed = await one.until(ExtensionError)
        assert isinstance(failed, ExtensionError)
        assert (failed.extension, failed.event) == ("/todo", "command")
        assert failed.error == "ValueError: broken"
        await one.session.prompt("go on")
        await one.idle()
        assert one.session.info.messages


async def test_a_command_runs_while_a_run_goes_on_and_beside_a_picture_it_is_words() -> None:
    sees = replace(SCRIPTED_FACTS, images=True)
    model, brought = ScriptedModel([say("one"), say("two")], facts=sees), Brought()
    async with bench(model) as one:
        bring(one, brought)
        await one.session.prompt("go")
        assert one.session.resources.runs("/todo now")
        assert not one.session.resources.runs("/nothing of that name")
        receipt = await one.session.prompt("/todo now")
        assert receipt.accepted == "handled"
        await one.idle()
        picture = Image(data="aGk=", mime="image/png")
        receipt = await one.session.prompt([Text(text="/todo"), picture])
        assert receipt.accepted == "started"
        await one.idle()
    assert brought.ran == [("todo", "now")]


async def test_words_are_written_out_for_the_model_and_stay_in_the_file_as_they_were() -> None:
    model = ScriptedModel([say("done"), say("done")])
    async with bench(model, templates=Shelf()) as one:
        await one.session.prompt("/mend the roof")
        await one.idle()
        assert told(model) == ["Mend the roof."]
        assert kept(one) == ["/mend the roof"]
        await one.session.prompt("/nothing of that name")
        await one.idle()
        assert told(model)[-1] == "/nothing of that name"


async def test_what_a_hook_makes_of_words_is_written_out() -> None:
    async def shorten(typed: InputTyped, _: object) -> InputReplaced:
        return InputReplaced(content=(Text(text="/mend it"),))

    table = HookTable()
    table.add(Hook("short", shorten), at=InputTyped)
    model = ScriptedModel([say("done")])
    async with bench(model, templates=Shelf(), hooks=table) as one:
        await one.session.prompt("m")
        await one.idle()
        assert told(model) == ["Mend it."]
        assert kept(one) == ["m"]


async def test_steering_is_written_out_when_it_is_said() -> None:
    model = ScriptedModel([say("one"), say("two")])
    async with bench(model, templates=Shelf()) as one:
        await one.session.prompt("go")
        await one.session.follow_up("/mend it")
        await one.idle()
        assert told(model) == ["go", "Mend it."]


async def test_each_name_is_listed_once_and_what_is_wrong_is_told_first() -> None:
    async with bench(ScriptedModel([]), templates=Shelf()) as one:
        bring(one, Brought())
        listed = [(command.name, command.source) for command in one.session.resources.commands()]
        assert listed == [
            ("todo", "extension"),
            ("slow", "extension"),
            ("fix", "extension"),
            ("mend", "prompt"),
        ]
        assert await one.session.resources.complete("todo", "x") == (Completion(value="todo x!"),)
        assert await one.session.resources.complete("mend", "x") == ()
        assert "something is wrong with a skill" in str(one.seen())
