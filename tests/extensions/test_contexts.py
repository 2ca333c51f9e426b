"""What handlers may do with the session, and when what they were handed is stale."""

from typing import Any

import pytest

from agent_core.events import Budgets, UiEditorText, UiNotify, UiStatus, UiTitle, UiWidget
from agent_core.extensions import ExtensionBroken, ListView, Row, TableView, TextView, Unsupported
from agent_core.extensions.api import ExtensionApi
from agent_core.hooks import GoOn, InputTyped, ToolCalled
from agent_core.kernel.errors import ContextStale, UsageError
from agent_core.messages import Usage
from agent_core.session.permissions.broker import PermissionState
from tests.support.hooks.extensions import Home, extended
from tests.support.session.scripted_model import ScriptedModel, call, say


async def test_a_context_shows_the_session(home: Home) -> None:
    seen: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.on(InputTyped)
        async def look(event, ctx):
            seen.extend(
                [
                    ctx.extension,
                    ctx.root,
                    ctx.is_trusted,
                    ctx.has_ui,
                    ctx.model.ref,
                    ctx.is_idle,
                    ctx.has_pending_messages,
                    ctx.usage.size,
                    len(ctx.messages),
                    len(ctx.entries) == len(await ctx.branch()),
                    (await ctx.system_prompt())[:15],
                ]
            )

    async with extended(home, ScriptedModel([say("ok")]), given=[mine]) as it:
        await it.say("go")
        assert it.errors() == []
    assert seen == [
        "mine", home.root, True, True, "scripted/model-1", False, False, 128_000, 1, True, "You are tested."
    ]  # fmt: skip


async def test_dialogs_ask_people(home: Home) -> None:
    got: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def ask(words, ctx):
            got.append(await ctx.ui.select("Which?", ["a", "b", "b"]))
            got.append(await ctx.ui.confirm("Sure?", "It is late."))
            got.append(await ctx.ui.input("Name?", "Ada"))
            got.append(await ctx.ui.editor("Text?", "before"))
            got.append(await ctx.ui.select("Again?", ["a"]))
            got.append(ctx.ui.unanswered)

    async with extended(home, given=[mine]) as it:
        await it.command("/ask", lambda: True)
        assert await it.answer("2", 1) == "mine: Which?"
        assert await it.answer(value=True, count=2) == "mine: Sure?\n\nIt is late."
        assert await it.answer("Lovelace", 3) == "mine: Name?\n\n(Ada)"
        assert await it.answer("after", 4) == "mine: Text?\n\nbefore"
        await it.answer(None, 5)
        await it.holds(lambda: len(got) == 6)
    assert got == ["b", True, "Lovelace", "after", None, ("select: user declined",)]


async def test_without_anybody_dialogs_answer_at_once_with_nothing(home: Home) -> None:
    got: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def ask(words, ctx):
            got.append(ctx.has_ui)
            got.append(await ctx.ui.select("Which?", ["a"]))
            got.append(await ctx.ui.confirm("Sure?"))
            got.append(await ctx.ui.input("Name?"))
            got.append(ctx.ui.unanswered)

    async with extended(
        home, given=[mine], standing=PermissionState(mode="yolo", fallback="deny")
    ) as it:
        await it.command("/ask", lambda: len(got) == 5)
    why = "nobody is to be asked here"
    assert got == [False, None, False, None, (f"select: {why}", f"confirm: {why}", f"input: {why}")]


async def test_views_are_told_as_events(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.command()
        def show(words, ctx):
            ctx.ui.notify("done", "warning")
            ctx.ui.status("build", "green")
            ctx.ui.working("thinking hard")
            ctx.ui.widget("w", ["one", "two"], placement="belowEditor")
            ctx.ui.widget(
                "l", ListView(title="T", rows=[Row(text="a", done=True), Row(text="b", detail="d")])
            )
            ctx.ui.widget("t", TableView(head=["h"], rows=[["c"]]))
            ctx.ui.widget("m", TextView(text="*x*", style="markdown"))
            ctx.ui.widget("w", None)
            ctx.ui.title("Window")
            ctx.ui.set_editor_text("new")
            ctx.ui.paste_to_editor("more")

    async with extended(home, given=[mine]) as it:
        shown = (UiNotify, UiStatus, UiWidget, UiTitle, UiEditorText)
        found = lambda: [one for one in it.bench.seen() if isinstance(one, shown)]  # noqa: E731
        await it.command("/show", lambda: len(found()) == 11)
        assert {one.extension for one in found()} == {"mine"}
        rows = [{"text": "a", "done": True}, {"text": "b", "detail": "d"}]
        assert [one.view for one in found()] == [
            {"text": "done", "level": "warning"},
            {"key": "build", "text": "green"},
            {"key": "working", "text": "thinking hard"},
            {"key": "w", "view": {"kind": "text", "text": "one\ntwo", "style": "plain"}, "placement": "belowEditor"},
            {"key": "l", "view": {"kind": "list", "rows": rows, "title": "T"}, "placement": "aboveEditor"},
            {"key": "t", "view": {"kind": "table", "head": ["h"], "rows": [["c"]]}, "placement": "aboveEditor"},
            {"key": "m", "view": {"kind": "text", "text": "*x*", "style": "markdown"}, "placement": "aboveEditor"},
            {"key": "w", "view": None, "placement": "aboveEditor"},
            {"text": "Window"},
            {"text": "new", "mode": "replace"},
            {"text": "more", "mode": "insert"},
        ]  # fmt: skip


async def test_a_plain_function_waits_for_people_too(home: Home) -> None:
    got: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.on(InputTyped)
        def ask(event, ctx):
            got.append(ctx.wait(ctx.ui.confirm("Sure?")))

        @api.command()
        async def wrong(words, ctx):
            with pytest.raises(ExtensionBroken, match="write await"):
                ctx.wait(ctx.ui.confirm("Sure?"))
            got.append("told")

    async with extended(home, ScriptedModel([say("ok")]), given=[mine]) as it:
        await it.bench.session.prompt("go")
        await it.answer(value=True)
        await it.bench.idle()
        await it.command("/wrong", lambda: len(got) == 2)
    assert got == [True, "told"]


async def test_nothing_waits_for_the_session_inside_of_it(home: Home) -> None:
    got: list[str] = []
    kept: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def keep(words, ctx):
            kept.append(ctx)

        @api.on(ToolCalled)
        async def hook(event, ctx):
            for attempt in (
                lambda: ctx.wait_for_idle,
                lambda: ctx.new_session,
                lambda: ctx.shutdown,
            ):
                with pytest.raises(Unsupported) as refused:
                    attempt()
                got.append(str(refused.value))
            with pytest.raises(Unsupported) as refused:
                await kept[0].wait_for_idle()
            got.append(str(refused.value))
            return GoOn()

        @api.tool(name="inner", description="d", parameters={"type": "object"}, kind="read")
        async def inner(arguments, ctx):
            with pytest.raises(Unsupported) as refused:
                await kept[0].reload()
            got.append(str(refused.value))

    model = ScriptedModel([call("inner"), say("ok")])
    async with extended(home, model, given=[mine]) as it:
        await it.command("/keep", lambda: bool(kept))
        await it.say("go")
        assert it.errors() == []
        await kept[0].wait_for_idle()
    assert got == [
        "ctx.wait_for_idle is not offered here: a hook that waited for the session would wait for itself; do it in a command",
        "ctx.new_session is not offered here: which session a window shows is the client's; fork gives a session that it can open",
        "ctx.shutdown is not offered here: one process serves many sessions, and an extension cannot end them",
        "waiting for the session inside a hook of tool_call would wait for itself; do it in a command",
        "loading extensions anew inside the tool inner would wait for itself; do it in a command",
    ]


async def test_a_command_leads_the_session(home: Home) -> None:
    got: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def lead(words, ctx):
            await api.send_user_message("first")
            await ctx.wait_for_idle()
            first = next(one for one in await ctx.branch() if type(one).__name__ == "MessageEntry")
            forked = await ctx.fork(first.id)
            moved = await ctx.navigate(first.id)
            got.append((forked.session, moved.cancelled, len(ctx.messages)))

    async with extended(home, ScriptedModel([say("ok")]), given=[mine]) as it:
        await it.command("/lead", lambda: bool(got) or bool(it.errors()))
        assert it.errors() == []
    assert got == [(None, False, 0)]


async def test_a_hook_may_stop_the_run_and_have_it_compacted(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.on(ToolCalled)
        def stop(event, ctx):
            ctx.abort()
            ctx.compact("briefly")
            return GoOn()

    model = ScriptedModel([call("echo"), say("never")])
    async with extended(home, model, given=[mine]) as it:
        await it.bench.session.prompt("go")
        result = await it.bench.session.wait_idle()
        assert result is not None
        assert result.status == "cancelled"


async def test_a_model_is_asked_beside_the_conversation(home: Home) -> None:
    got: list[str] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def ask(words, ctx):
            answer = await ctx.complete(words, system="Be brief.")
            got.append(answer.text)

    model = ScriptedModel([say("four")])
    async with extended(home, model, given=[mine]) as it:
        await it.command("/ask two and two?", lambda: bool(got))
        assert it.bench.messages == ()
    assert got == ["four"]
    assert model.requests[0].system == "Be brief."


async def test_what_an_extension_asks_of_a_model_counts_for_the_budget(home: Home) -> None:
    def mine(api: ExtensionApi) -> None:
        @api.on(ToolCalled)
        async def check(event, ctx):
            _ = await ctx.complete("is that wise?")
            return GoOn()

    asked = Usage(input=600, output=400)
    model = ScriptedModel([call("echo"), say("yes", usage=asked), say("never")])
    async with extended(home, model, given=[mine], budgets=Budgets(tokens=1000)) as it:
        await it.bench.session.prompt("go")
        result = await it.bench.session.wait_idle()
        assert result is not None
        assert (result.status, result.usage.tokens.total) == ("budget", 1000)
    assert len(model.requests) == 2


async def test_what_was_handed_out_is_stale_after_the_session(home: Home) -> None:
    kept: list[Any] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def keep(words, ctx):
            kept.extend([ctx, ctx.ui, api, api.events])

    async with extended(home, given=[mine]) as it:
        await it.command("/keep", lambda: bool(kept))
    ctx, ui, api, events = kept
    for attempt in (
        lambda: ctx.root,
        lambda: ui.notify("x"),
        lambda: api.session_name,
        lambda: events.emit("x"),
        lambda: api.flag("x"),
    ):
        with pytest.raises(ContextStale, match="is stale: its session is over"):
            attempt()


@pytest.mark.parametrize("name", ["custom", "set_footer", "on_terminal_input", "theme"])
async def test_what_a_client_cannot_show_says_what_to_do_instead(home: Home, name: str) -> None:
    got: list[str] = []

    def mine(api: ExtensionApi) -> None:
        @api.command()
        async def show(words, ctx):
            with pytest.raises(Unsupported) as refused:
                getattr(ctx.ui, name)
            with pytest.raises(UsageError, match="empty question"):
                await ctx.ui.confirm(" ")
            assert not hasattr(ctx.ui, "nothing_like_it")
            got.append(str(refused.value))

    async with extended(home, given=[mine]) as it:
        await it.command("/show", lambda: bool(got) or bool(it.errors()))
    assert got[0].startswith(f"ui.{name} is not offered: ")


READER = """
def extension(api):
    @api.command()
    async def look(text, ctx):
        session = ctx.session
        user = next(node for node in session.nodes() if node.role == "user")
        await api.set_label(user.entry, "start")
        bodies = await session.read(session.path(user.entry))
        api.seen = dict(
            id=session.id,
            cwd=session.header.cwd,
            file=session.file,
            name=session.name,
            labels=dict(session.labels),
            user=user.entry,
            preview=user.preview,
            begins_a_tree=user.parent is None,
            texts=[entry.message.content[0].text for entry in bodies if entry.id == user.entry],
            is_at_end=session.leaf != user.entry,
            roles=[node.role for node in session.nodes()],
            branches=len(session.entries) - len(ctx.entries),
        )
        ctx.ui.notify(repr(api.seen))
"""


async def test_an_extension_reads_the_whole_session(home: Home) -> None:
    home.write("reader.py", READER)
    async with extended(home, ScriptedModel([say("one"), say("two")])) as it:
        shown = lambda: [one for one in it.bench.seen() if isinstance(one, UiNotify)]  # noqa: E731
        await it.say("first")
        user = next(node.entry for node in it.bench.session.tree.nodes() if node.role == "user")
        _ = await it.bench.session.tree.navigate(user)
        await it.say("second")
        await it.command("/look", lambda: bool(shown()) or bool(it.errors()))
        assert it.errors() == []
        text = str(shown()[0].view["text"])
        session = it.bench.session
        for part in (
            f"'id': {session.id!r}",
            f"'cwd': {str(home.root)!r}",
            f"'labels': {{{user!r}: 'start'}}",
            "'preview': 'first'",
            "'begins_a_tree': True",
            "'texts': ['first']",
            "'is_at_end': True",
            "'roles': ['user', 'assistant', 'user', 'assistant']",
        ):
            assert part in text
        assert "'branches': 0" not in text
        assert session.tree.labels == {user: "start"}


async def test_an_extension_finds_models_and_describes_tools(home: Home) -> None:
    seen: list[Any] = []
    home.write(
        "tools.py",
        '''
        def extension(api):
            @api.tool(parameters={"type": "object"}, kind="read")
            async def ping(arguments, ctx):
                """Answer a ping."""
                return "pong"
        ''',
    )

    def mine(api: ExtensionApi) -> None:
        @api.on(InputTyped)
        def look(event, ctx):
            found = ctx.models.find("scripted/model-1")
            seen.append(found.ref if found else None)
            seen.append(ctx.models.find("nothing/like-it"))
            seen.append([model.ref for model in ctx.models.list()])
            seen.append(len(ctx.models.list(usable=False)) >= len(ctx.models.list()))
            seen.extend(
                (tool.name, tool.description, tool.kind, tool.source, tool.is_active)
                for tool in api.describe_tools()
            )

    async with extended(home, ScriptedModel([say("ok")]), given=[mine]) as it:
        await it.say("go")
        assert it.errors() == []
    assert seen[:4] == ["scripted/model-1", None, ["scripted/model-1"], True]
    assert ("ping", "Answer a ping.", "read", "extension:tools", True) in seen
    assert [tool[3] for tool in seen[4:] if tool[0] == "echo"] == ["program"]
