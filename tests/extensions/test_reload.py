"""Loading anew in the middle of a session: new code from the next event on, old contexts say that they are stale."""

from typing import Any

import anyio
import pytest

from agent_core.extensions.api import ExtensionApi
from agent_core.hooks import Hook, HookTable, InputHandled, InputTyped
from agent_core.kernel.errors import ContextStale
from tests.support.hooks.extensions import Home, extended
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import words

SAYS = """
from agent_core.hooks import InputReplaced
from agent_core.messages import Text

kept = []

def extension(api):
    @api.on("input")
    async def add(event, ctx):
        kept.append((ctx, api))
        return InputReplaced(content=(*event.content, Text(text="{0}")))

    @api.tool(description="d", parameters={{"type": "object"}}, kind="read")
    async def {1}(arguments, ctx):
        return "{0}"

    @api.command()
    async def {1}_command(words, ctx):
        pass
"""


async def test_new_code_is_asked_from_the_next_event_on(home: Home) -> None:
    home.write("x.py", SAYS.format("old", "first"))
    model = ScriptedModel([say("1"), say("2")])
    async with extended(home, model) as it:
        session = it.bench.session
        await it.say("a")
        home.write("x.py", SAYS.format("new", "second"))
        loaded = await session.resources.reload()
        assert [(one.kind, one.name) for one in loaded.resources if one.kind == "extension"] == [
            ("extension", "x")
        ]
        await it.say("b")
        assert [words(one) for one in it.bench.messages if type(one).__name__ == "UserMessage"] == [
            "aold",
            "bnew",
        ]
        assert "second" in session.tools.active
        assert "first" not in session.tools.all
        assert [one.name for one in session.resources.commands()] == ["second-command"]
        assert it.errors() == []


async def test_old_contexts_say_that_they_are_stale(home: Home) -> None:
    kept: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.on("input")
        async def keep(event, ctx):
            kept.append((ctx, api))

    async with extended(home, ScriptedModel([say("1"), say("2")]), given=[mine]) as it:
        await it.say("a")
        await it.bench.session.resources.reload()
        await it.say("b")
        (old, old_api), (new, new_api) = kept
        for attempt in (lambda: old.root, lambda: old.ui.notify("x"), lambda: old_api.session_name):
            with pytest.raises(ContextStale, match="the extension was loaded anew"):
                attempt()
        assert new.root == home.root
        assert new_api.session_name is None


async def test_the_code_hears_of_its_end_and_its_begin(home: Home) -> None:
    heard: list[tuple[str, str]] = []

    def mine(api: ExtensionApi) -> None:
        @api.on("session_start")
        async def begins(event, ctx):
            heard.append(("begins", event.reason))

        @api.on("session_shutdown")
        async def ends(event, ctx):
            assert ctx.root, "its context still stands"
            heard.append(("ends", event.reason))

    async with extended(home, given=[mine]) as it:
        await it.bench.session.resources.reload()
        assert it.errors() == []
    assert heard == [("begins", "new"), ("ends", "reload"), ("begins", "reload"), ("ends", "quit")]


async def test_in_the_middle_of_a_run_the_new_code_answers_the_next_event(home: Home) -> None:
    gate = Gate()
    home.write("x.py", SAYS.format("old", "work"))
    model = ScriptedModel([call("work"), [gate, *call("work", id="c2")], say("ok")])
    async with extended(home, model) as it:
        await it.bench.session.prompt("go")
        await gate.reached.wait()
        home.write("x.py", SAYS.format("new", "work"))
        await it.bench.session.resources.reload()
        gate.release()
        await it.bench.idle()
        assert it.bench.results() == ["old", "new"]


async def test_a_broken_edit_leaves_the_old_code_in_force(home: Home) -> None:
    home.write("x.py", SAYS.format("old", "work"))
    async with extended(home, ScriptedModel([say("1")])) as it:
        home.write("x.py", "def extension(api:\n")
        loaded = await it.bench.session.resources.reload()
        (problem,) = loaded.problems
        assert "SyntaxError" in str(problem)
        assert "its old code stays in force" in str(problem)
        await it.say("a")
        assert words(it.bench.messages[0]) == "aold"


async def test_what_is_gone_is_gone(home: Home) -> None:
    path = home.write("x.py", SAYS.format("old", "work"))
    async with extended(home, ScriptedModel([say("1")])) as it:
        path.unlink()
        await it.bench.session.resources.reload()
        assert it.names == []
        assert "work" not in it.bench.session.tools.all
        await it.say("a")
        assert words(it.bench.messages[0]) == "a"


async def test_a_tool_of_ours_is_back_when_the_one_before_it_goes(home: Home) -> None:
    path = home.write("x.py", SAYS.format("mine", "echo"))
    async with extended(home, ScriptedModel([call("echo"), say("1")])) as it:
        path.unlink()
        await it.bench.session.resources.reload()
        await it.say("a")
        assert it.bench.results() == ["echo:"]


async def test_hooks_of_the_program_of_the_same_name_stay(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        api.on("input")(lambda event, ctx: None)

    async with extended(home, given=[mine]) as it:
        table: HookTable = it.extending._request.hooks
        table.add(Hook("mine", lambda event, ctx: InputHandled()), at=InputTyped)
        await it.bench.session.resources.reload()
        await it.bench.session.prompt("never asked")
        await it.bench.idle()
        assert it.bench.model.requests == []


async def test_a_saved_file_is_loaded_anew_by_itself(home: Home) -> None:
    home.write("x.py", SAYS.format("old", "first"))
    async with extended(home, ScriptedModel([say("1")])) as it:
        # The watch begins in a task of the session; what is written before it is seen at the next change.
        with anyio.fail_after(10):
            while "second" not in it.bench.session.tools.all:
                home.write("x.py", SAYS.format("new", "second"))
                await anyio.sleep(0.3)
        assert it.names == ["x"]


async def test_the_bus_carries_between_extensions_and_survives_no_reload(home: Home) -> None:
    home.write(
        "a_listener.py",
        """
        def extension(api):
            async def later(data):
                api.flag(f"later-{data}")
            api.events.on("tick", lambda data: api.flag(f"heard-{data}"))
            api.events.on("tick", later)
            stop = api.events.on("tick", lambda data: api.flag("never"))
            stop()
            api.events.on("tick", lambda data: 1 / 0)
        """,
    )
    home.write(
        "teller.py",
        """
        def extension(api):
            @api.command()
            async def tell(words, ctx):
                api.events.emit("tick", words)
        """,
    )
    async with extended(home) as it:
        await it.command("/tell 1", lambda: "later-1" in it.host.offers.flags)
        assert sorted(it.host.offers.flags) == ["heard-1", "later-1"]
        assert it.errors() == [
            ("a_listener", "events: tick", "ZeroDivisionError: division by zero")
        ]
        await it.bench.session.resources.reload()
        await it.command("/tell 2", lambda: "later-2" in it.host.offers.flags)
        assert sorted(it.host.offers.flags) == ["heard-2", "later-2"]
