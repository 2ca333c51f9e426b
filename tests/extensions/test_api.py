"""What an extension registers, and what becomes of it in a session."""

import re
import threading
from typing import cast

import anyio
import pytest

from agent_core.events import ExtensionError, ToolEnded, ToolRunning
from agent_core.extensions import Completion, ExtensionBroken
from agent_core.extensions.api import EventBus, ExtensionApi
from agent_core.extensions.client_offers import ExtensionCommands
from agent_core.extensions.registry import Registrations
from agent_core.extensions.scope import ExtensionScope
from agent_core.hooks import GoOn, InputReplaced, InputTyped, ToolBlocked, ToolCalled
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import UsageError
from agent_core.messages import Text, text_of
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import ToolResult, text_result
from agent_core.tools.arguments import ToolArguments
from agent_core.transcript.entries import CustomEntry, CustomMessageEntry
from tests.support.hooks.extensions import Home, extended
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import words
from tests.support.workspace.tools import echo


class Sum(ToolArguments):
    a: int
    b: int = 1


async def test_a_hook_may_be_registered_by_class_or_by_name(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.on(InputTyped)
        async def first(event, ctx):
            return InputReplaced(content=(*event.content, Text(text="1")))

        @api.on("input")
        def second(event):
            return InputReplaced(content=(*event.content, Text(text="2")))

    async with extended(home, ScriptedModel([say("ok")]), given=[mine]) as it:
        await it.say("0")
        assert words(it.bench.messages[0]) == "012"
        assert it.errors() == []


async def test_a_tool_is_checked_run_and_hooked_like_every_other(home: Home) -> None:
    seen: list[ToolCalled] = []

    def mine(api: ExtensionApi) -> None:
        @api.tool(kind="read")
        async def add(arguments: Sum, ctx) -> str:
            """Add two numbers."""
            ctx.call.output("working\n")
            return str(arguments.a + arguments.b)

        @api.on(ToolCalled)
        async def watch(event, ctx):
            seen.append(event)
            return GoOn()

    model = ScriptedModel([call("add", {"a": "3"}), call("add", {"a": "x"}, id="c2"), say("ok")])
    async with extended(home, model, given=[mine]) as it:
        assert "add" in it.bench.session.tools.active
        await it.say("go")
        assert [one.arguments for one in seen] == [{"a": 3}]
        good, bad = it.bench.results()
        assert good == "4"
        assert bad.startswith('Validation failed for tool "add"')
    declared = next(one for one in model.requests[0].tools if one.name == "add")
    assert declared.description == "Add two numbers."
    assert declared.parameters["required"] == ["a"]


async def test_a_plain_tool_runs_in_a_thread_and_may_give_a_result(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.tool(name="plain", description="d", parameters={"type": "object"}, kind="read")
        def work(arguments, ctx) -> ToolResult:
            return text_result(f"{arguments}", details={"rows": 1})

        @api.tool(name="odd", description="d", parameters={"type": "object"}, kind="read")
        async def odd(arguments, ctx):
            return 3

        @api.tool(name="none", description="d", parameters={"type": "object"}, kind="read")
        async def none(arguments, ctx):
            return None

    model = ScriptedModel(
        [call("plain", {"x": 1}), call("odd", id="c2"), call("none", id="c3"), say("")]
    )
    async with extended(home, model, given=[mine]) as it:
        events = await it.say("go")
        ended = [one for one in events if isinstance(one, ToolEnded)]
        assert ended[0].details == {"rows": 1}
        assert it.bench.results()[0] == "{'x': 1}"
        assert "gave a int; it must give words or a ToolResult" in it.bench.results()[1]
        assert it.bench.results()[2] == "Done."


async def test_a_tool_of_kind_other_is_asked_about(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.tool(description="d", parameters={"type": "object"})
        async def risky(arguments, ctx):
            return "done"

    model = ScriptedModel([call("risky"), say("ok")])
    async with extended(
        home, model, given=[mine], standing=PermissionState(mode="ask", fallback="deny")
    ) as it:
        await it.say("go")
        assert "nobody can be asked here" in it.bench.results()[0]


async def test_a_hook_of_an_extension_blocks_a_tool_of_ours(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.on(ToolCalled)
        async def gate(event, ctx):
            return ToolBlocked(reason="not today")

    tool = echo("bash")
    model = ScriptedModel([call("bash"), say("ok")])
    async with extended(home, model, given=[mine], tools=[tool]) as it:
        await it.say("go")
        assert it.bench.results() == ["not today"]
        assert tool.calls == []


async def test_a_hook_that_forgets_its_answer_is_named_by_its_function(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.on(ToolCalled)
        async def keep_migrations(event, ctx):
            pass

    model = ScriptedModel([call("echo"), say("ok")])
    async with extended(home, model, given=[mine], tools=[echo()]) as it:
        await it.say("go")
        ((_, event, text),) = it.errors()
    assert event == "tool_call"
    assert text.startswith("keep_migrations gave no answer to tool_call: return GoOn()")


async def test_a_tool_may_stand_in_the_place_of_a_built_in_one(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.tool(name="echo", description="d", parameters={"type": "object"}, kind="read")
        async def other(arguments, ctx):
            return "mine"

    model = ScriptedModel([call("echo"), say("ok")])
    async with extended(home, model, given=[mine], tools=[echo()]) as it:
        await it.say("go")
        assert it.bench.results() == ["mine"]


async def test_what_is_registered_by_a_handler_counts_too(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def more(words, ctx):
            @api.tool(name="late", description="d", parameters={"type": "object"}, kind="read")
            async def late(arguments, context):
                return "late"

        @api.command(name="threaded")
        def threaded(words, ctx):
            api.command("newer")(lambda words, ctx: None)

    async with extended(home, given=[mine]) as it:
        await it.command("/more", lambda: "late" in it.bench.session.tools.active)
        await it.command("/threaded", lambda: "newer" in it.host.offers.commands)


async def test_commands_get_their_words_and_complete_them(home: Home) -> None:
    seen: list[object] = []

    def mine(api: ExtensionApi) -> None:
        @api.command(
            argument_hint="WHO", complete=lambda typed: [f"{typed}da", Completion(value="x")]
        )
        async def say_hello(words, ctx):
            """Say hello.

            More about it.
            """
            seen.append((words, type(ctx).__name__))

        api.command("silent", complete=lambda typed: None)(lambda words, ctx: seen.append("silent"))

    async with extended(home, given=[mine]) as it:
        session = it.bench.session
        assert [
            (one.name, one.description, one.argument_hint) for one in session.resources.commands()
        ] == [
            ("say-hello", "Say hello.", "WHO"),
            ("silent", "", ""),
        ]
        assert [one.value for one in await session.resources.complete("say-hello", "A")] == [
            "Ada",
            "x",
        ]
        assert await session.resources.complete("silent", "") == ()
        await it.command("/say-hello  Ada Lovelace ", lambda: len(seen) == 1)
        await it.command("/silent", lambda: len(seen) == 2)
        assert seen == [("Ada Lovelace", "CommandContext"), "silent"]


async def test_a_command_that_fails_is_told(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def bad(words, ctx):
            raise ValueError("no")

    async with extended(home, given=[mine]) as it:
        await it.command("/bad", lambda: bool(it.errors()))
        ((name, event, text),) = it.errors()
        assert (name, event) == ("/bad", "command")
        assert re.fullmatch(rf"ValueError: no \({re.escape(__file__)}, line \d+\)", text)


@pytest.mark.parametrize("name", ["two words", "a/b", ""])
def test_a_command_needs_a_name_that_can_be_typed(name: str) -> None:
    with pytest.raises((ExtensionBroken, AttributeError)):
        bare().command(name or "/")(lambda words, ctx: None)


async def test_flags_are_the_users(home: Home) -> None:
    seen: dict[str, object] = {}

    def mine(api: ExtensionApi) -> None:
        api.flag("loud", default=False)
        api.flag("tone", kind="string", default="low")
        api.flag("wrong", default=True)

        @api.command()
        async def read(words, ctx):
            seen.update({name: api.get_flag(name) for name in ("loud", "tone", "wrong", "other")})

    flags = {"loud": True, "wrong": "text", "other": True}
    async with extended(home, given=[mine], settings={"extensionFlags": flags}) as it:
        await it.command("/read", lambda: bool(seen))
    assert seen == {"loud": True, "tone": "low", "wrong": True, "other": None}


async def test_keys_and_renderers_are_offered(home: Home) -> None:
    pressed: list[str] = []

    def mine(api: ExtensionApi) -> None:
        @api.shortcut("Ctrl+Shift+T", description="tick")
        async def tick(ctx):
            pressed.append(ctx.extension)

        @api.message_renderer("todo")
        def draw(message):
            return f"drawn {message.custom_type}"

    async with extended(home, given=[mine]) as it:
        offers = it.host.offers
        assert offers.shortcuts["ctrl+shift+t"].description == "tick"
        assert list(offers.renderers) == ["todo"]
        commands = ExtensionCommands(it.host)
        await commands.press("CTRL+SHIFT+T")
        assert pressed == ["mine"]
        with pytest.raises(ExtensionBroken, match="no extension has the key"):
            await commands.press("f1")


@pytest.mark.parametrize("how", ["blocks", "waits", "will not end"])
async def test_a_renderer_that_does_not_end_is_given_up(home: Home, how: str) -> None:
    over = threading.Event()

    def mine(api: ExtensionApi) -> None:
        async def wait(message):
            while not over.is_set():
                try:
                    await anyio.sleep(0.01 if how == "will not end" else 60)
                except anyio.get_cancelled_exc_class():
                    if how == "waits":
                        raise

        def block(message):
            over.wait()

        _ = api.message_renderer("note")(block if how == "blocks" else wait)

        @api.command()
        async def tell(words, ctx):
            await api.send_message("words", custom_type="note")

    settings = {"hooks": {"timeoutS": 0.1}}
    async with extended(home, given=[mine], settings=settings) as it:
        session = it.bench.session
        await it.command("/tell", lambda: bool(it.bench.messages))
        entry = (await session.programs.whole())[-1]
        assert await session.resources.rendered(entry.id) is None
        (error,) = [one for one in it.bench.seen() if isinstance(one, ExtensionError)]
        assert "of extension 'mine': no answer within 0.1 s" in error.error
        over.set()


async def test_deeds(home: Home) -> None:
    done: list[object] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def act(words, ctx):
            await api.send_message("from a program", custom_type="note", details={"n": 1})
            entry = await api.append_entry("state", {"items": [1]})
            await api.set_label(entry, "here")
            await api.set_session_name("A name")
            await api.set_active_tools(["echo"])
            await api.set_thinking("high")
            done.append((api.session_name, api.active_tools, api.all_tools, api.thinking))
            done.append(await api.set_model("scripted/model-1"))
            done.append(await api.set_model("nobody/nothing"))
            done.append([one.name for one in api.commands()])
            with pytest.raises(UsageError, match="Tiller's own"):
                await api.send_message("x", custom_type="tiller.run")
            with pytest.raises(UsageError):
                await api.append_entry("tiller.run", {})
            with pytest.raises(UsageError, match="no JSON"):
                await api.append_entry("state", cast("JsonObject", {"x": object()}))
            await api.send_user_message("now you")
            done.append("end")

    model = ScriptedModel([say("ok")])
    async with extended(home, model, given=[mine]) as it:
        await it.command("/act", lambda: "end" in done)
        await it.bench.idle()
        assert done == [
            ("A name", ("echo",), ("echo",), "high"),
            True,
            False,
            ["act"],
            "end",
        ]
        entries = await it.bench.session.programs.whole()
        assert [
            one.data
            for one in entries
            if isinstance(one, CustomEntry) and one.custom_type == "state"
        ] == [{"items": [1]}]
        assert [one.details for one in entries if isinstance(one, CustomMessageEntry)] == [{"n": 1}]
        assert it.errors() == []


async def test_deeds_are_not_done_while_loading(home: Home) -> None:
    async def mine(api: ExtensionApi) -> None:
        await api.send_user_message("too early")

    async with extended(home, given=[mine]) as it:
        assert "the session is not open while extensions are loaded" in it.problems[0]


def test_a_tool_must_say_what_it_takes() -> None:
    with pytest.raises(ExtensionBroken, match="does not say what it takes"):

        @bare().tool(description="d")
        def work(arguments, ctx):
            return ""


def test_a_tool_must_be_described() -> None:
    with pytest.raises(ExtensionBroken, match="has no description"):

        @bare().tool(parameters={"type": "object"})
        def work(arguments, ctx):
            return ""


def bare() -> ExtensionApi:
    return ExtensionApi(
        ExtensionScope("x"),
        Registrations(extension="x"),
        bus=EventBus(failed=lambda *_: None, later=lambda *_: None),
        flags=lambda _: None,
        changed=lambda: None,
    )


async def test_words_of_an_extension_are_told_apart_and_run_no_command(home: Home) -> None:
    heard: list[tuple[str, str]] = []
    ran: list[str] = []

    def mine(api: ExtensionApi) -> None:
        @api.on(InputTyped)
        def typed(event: InputTyped, ctx: object) -> None:
            (part,) = event.content
            heard.append((event.source, part.text if isinstance(part, Text) else ""))

        @api.command()
        async def act(words, ctx):
            ran.append(words)
            await api.send_user_message("/act again")

    model = ScriptedModel([say("one"), say("two")])
    async with extended(home, model, given=[mine]) as it:
        await it.command("/act once", lambda: bool(heard))
        await it.bench.idle()
        await it.say("hello")
        assert ran == ["once"]
        assert heard == [("program", "/act again"), ("person", "hello")]
        first, second = ([words(one) for one in request.messages] for request in model.requests)
        assert first == ["/act again"]
        assert second == ["/act again", "one", "hello"]
        assert it.errors() == []


DRAWN = """
from agent_core.extensions import ListView, Row, TableView, ToolArguments, ToolResult, text_result


class Find(ToolArguments):
    name: str
    place: str = "town"


def extension(api):
    @api.tool(
        kind="read",
        label="Directory",
        view_call=lambda arguments: f"Looking for {arguments['name']} in {arguments['place']}",
        view_result=lambda result: TableView(head=["Name"], rows=[[result.content[0].text]]),
    )
    async def find(arguments: Find, ctx) -> ToolResult:
        "Find a person."
        return text_result("Ada", details={"count": 1})

    @api.tool(kind="read", view_call=lambda arguments: 7, view_result=lambda result: 1 / 0)
    def broken(arguments: Find, ctx) -> str:
        "Find nobody."
        return "nobody"
"""


SLOW = """
import threading
from agent_core.extensions import ToolArguments

DRAWN = []


def draw(arguments):
    DRAWN.append(arguments)
    threading.Event().wait(30)


def extension(api):
    @api.tool(kind="read", parameters={"type": "object"}, view_call=draw)
    def slow(arguments, ctx) -> str:
        "Return how often the view was drawn."
        return str(len(DRAWN))
"""


async def test_a_view_that_takes_too_long_holds_up_no_call_and_is_not_drawn_again(
    home: Home,
) -> None:
    home.write("slow.py", SLOW)
    async with extended(home, ScriptedModel([call("slow"), say("done")])) as it:
        seen = await it.say("go")
        (began,) = [one for one in seen if isinstance(one, ToolRunning)]
        (ended,) = [one for one in seen if isinstance(one, ToolEnded)]
        assert (began.details, ended.status, text_of(ended.content)) == (None, "ok", "1")
        text = "The view failed: it took too long."
        assert ended.details == {"call_view": {"kind": "text", "text": text, "style": "plain"}}


READER = """
from agent_core.extensions import ToolArguments


class Which(ToolArguments):
    path: str


def extension(api):
    @api.tool(kind="read")
    async def lines(arguments: Which, ctx) -> str:
        "Count the lines of a file."
        path = await ctx.call.files.resolve(arguments.path, "read")
        return str((await ctx.call.files.read(path)).text.count("\\n"))
"""


async def test_a_tool_reads_files_as_other_tools_do(home: Home) -> None:
    home.write("reader.py", READER)
    paths = ["a.txt", "gone.txt", "../outside.txt"]
    calls = [call("lines", {"path": path}) for path in paths]
    model = ScriptedModel([*calls, say("done")])
    async with extended(home, model, files={"a.txt": "one\ntwo\n"}) as it:
        seen = await it.say("go")
        ended = [one for one in seen if isinstance(one, ToolEnded)]
        assert [one.status for one in ended] == ["ok", "error", "error"]
        texts = [text_of(one.content) for one in ended]
        assert texts[0] == "2"
        assert "gone.txt" in texts[1]
        assert "outside" in texts[2]


async def test_a_tool_has_a_label_and_views_of_its_call_and_result(home: Home) -> None:
    path = home.write("directory.py", DRAWN)
    line = DRAWN.split("1 / 0", maxsplit=1)[0].count("\n") + 1
    model = ScriptedModel(
        [call("find", {"name": "ada"}), call("broken", {"name": "bob"}), say("done")]
    )
    async with extended(home, model) as it:
        seen = await it.say("go")
        began = [one for one in seen if isinstance(one, ToolRunning)]
        assert [one.title for one in began] == ["Directory", "broken"]
        drawn = {"kind": "text", "text": "Looking for ada in town", "style": "plain"}
        text = "The view failed: TypeError: 7 is no view; return a text, TextView, ListView or TableView"
        undrawn = {"kind": "text", "text": text, "style": "plain"}
        assert [one.details for one in began] == [{"call_view": drawn}, {"call_view": undrawn}]
        found, broken = [one for one in seen if isinstance(one, ToolEnded)]
        assert found.details == {
            "count": 1,
            "call_view": drawn,
            "view": {"kind": "table", "head": ["Name"], "rows": [["Ada"]]},
        }
        assert broken.status == "ok"
        assert broken.details == {
            "call_view": undrawn,
            "view": {
                "kind": "text",
                "text": f"The view failed: ZeroDivisionError: division by zero ({path}, line {line})",
                "style": "plain",
            },
        }
        assert it.errors() == []
