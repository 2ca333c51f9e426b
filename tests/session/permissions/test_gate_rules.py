"""Standing answers and containment: in force at once, kept where they belong, never asked again."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.events import (
    CommandSubject,
    Notice,
    PermissionRequested,
    PermissionResolved,
    RuleInfo,
)
from agent_core.kernel.errors import UsageError
from agent_core.session.context import SessionOptions
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import text_result
from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.permissions.policy import Rule
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import (
    PATH,
    MemoryRules,
    asked,
    command_tool,
    ended,
    model_of,
    run,
)
from tests.support.session.scripted_model import ScriptedModel, both, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool


async def test_an_answer_for_good_is_in_force_for_the_next_call_of_the_same_batch() -> None:
    keeper = MemoryRules()
    standing = PermissionState(mode="ask", keeper=keeper)
    batch = both(*(run("make all", call_id=f"c{at}") for at in range(3)))
    async with bench(
        ScriptedModel([batch, say("done")]),
        tools=[command_tool()],
        clock=HeldClock(),
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        always = next(one for one in request.options if one.kind == "allowProject")
        it.session.permissions.answer(request.request, always.id)
        assert await ended(it) == ["ok", "ok", "ok"]
        assert len([one for one in it.seen() if isinstance(one, PermissionRequested)]) == 1
        resolved = next(one for one in it.seen() if isinstance(one, PermissionResolved))
        assert resolved.rule == always.rule
        assert [rule.id for rule in keeper.kept] == [always.rule.id]
        assert [rule.id for rule in it.session.permissions.rules] == [always.rule.id]


async def test_what_was_allowed_for_a_run_is_asked_again_in_the_next() -> None:
    async with bench(
        model_of("make all", "make all"),
        tools=[command_tool()],
        mode="ask",
        clock=HeldClock(),
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "allowRun")
        assert await ended(it) == ["ok", "ok"]
        it.model.add(run("make all"), say("ok"))
        await it.session.prompt("again")
        request = await asked(it, 2)
        it.session.permissions.answer(request.request, "rejectOnce")
        await it.idle()


async def test_a_no_for_good_is_not_asked_again() -> None:
    async with bench(
        model_of("make all", "make all"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "rejectAlways")
        assert await ended(it) == ["blocked", "blocked"]
        assert len([one for one in it.seen() if isinstance(one, PermissionRequested)]) == 1


async def test_a_rule_that_cannot_be_kept_holds_in_the_session_and_that_is_told() -> None:
    standing = PermissionState(mode="ask", keeper=MemoryRules(broken=True))
    async with bench(
        model_of("make all"),
        tools=[command_tool()],
        clock=HeldClock(),
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "allowProject")
        assert await ended(it) == ["ok"]
        told = [one.text for one in it.seen() if isinstance(one, Notice)]
        assert any("no space left" in text for text in told)


async def test_an_answer_given_elsewhere_is_found_before_anybody_is_asked() -> None:
    keeper = MemoryRules()
    standing = PermissionState(mode="ask", keeper=keeper)
    async with bench(
        model_of("make all", "make all"),
        tools=[command_tool()],
        clock=HeldClock(),
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        rule = next(one.rule for one in request.options if one.kind == "allowProject")
        it.session.permissions.answer(request.request, "allowOnce")
        keeper.kept.append(
            Rule(
                id=rule.id,
                tool="bash",
                verdict="allow",
                scope="project",
                argv_prefix=rule.argv_prefix,
                program="/usr/bin/make",
            )
        )
        await ended(it)
        assert len([one for one in it.seen() if isinstance(one, PermissionRequested)]) == 1


async def test_contained_commands_run_unasked_and_the_level_is_looked_at_each_time() -> None:
    level: list[SandboxLevel] = ["full"]

    async def work(arguments, context):
        level[0] = "none"
        return text_result("ran")

    standing = PermissionState(mode="ask", containment=lambda: level[0])
    async with bench(
        model_of("make a", "make b"),
        tools=[FunctionTool("bash", work, kind="execute")],
        clock=HeldClock(),
        standing=standing,
    ) as it:
        assert it.session.info.snapshot().sandbox == "full"
        await it.session.prompt("go")
        request = await asked(it)
        assert (request.subject.command, request.subject.sandbox) == ("make b", "none")
        it.session.permissions.answer(request.request, "rejectOnce")
        assert await ended(it) == ["ok", "blocked"]


async def test_network_is_asked_for_once_for_the_project() -> None:
    standing = PermissionState(mode="ask", containment=lambda: "full", keeper=MemoryRules())
    commands = [run(f"pip install {name}", call_id=name, needs=["network"]) for name in ("a", "b")]
    async with bench(
        ScriptedModel([*commands, say("ok")]),
        tools=[command_tool()],
        clock=HeldClock(),
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert request.subject.needs == ("network",)
        labels = [one.label for one in request.options if one.kind == "allowProject"]
        assert labels == ["Allow network for this project"]
        it.session.permissions.answer(request.request, "allowProject")
        assert await ended(it) == ["ok", "ok"]
        assert len([one for one in it.seen() if isinstance(one, PermissionRequested)]) == 1


async def test_a_need_that_nobody_knows_is_refused() -> None:
    model = ScriptedModel([run("make", needs=["root"]), say("ok")])
    async with bench(model, tools=[command_tool()], mode="yolo") as it:
        await it.session.prompt("go")
        assert await ended(it) == ["blocked"]


async def test_rules_are_listed_added_and_removed() -> None:
    keeper = MemoryRules()
    async with bench(
        model_of("rm -rf build"),
        tools=[command_tool()],
        standing=PermissionState(mode="yolo", keeper=keeper),
        env={"PATH": PATH},
    ) as it:
        permissions = it.session.permissions
        deny = replace(
            _shown(), tool="bash", argv_prefix=("rm", "-rf"), verdict="deny", match=("rm -rf x",)
        )
        (added,) = await permissions.add(deny)
        assert added.id.startswith("deny-")
        assert keeper.kept == []
        await it.session.prompt("go")
        assert await ended(it) == ["blocked"]
        assert await permissions.remove(added.id) == ()
        wrong = replace(deny, match=("ls",))
        with pytest.raises(UsageError, match="'ls'"):
            await permissions.add(wrong)
        assert permissions.rules == ()


def _shown():
    return RuleInfo(id="", tool="bash", verdict="deny", scope="session")


async def test_the_users_own_prefix_is_shown_and_what_the_model_wrote_is_judged() -> None:
    options = SessionOptions(tool_options={"bash": {"prefix": "source env.sh"}})
    ruled = Rule(id="r", tool="bash", argv_prefix=("make",), verdict="deny", scope="user")
    standing = PermissionState(mode="ask", keeper=MemoryRules(kept=[ruled]))
    await standing.refresh()
    async with bench(
        ScriptedModel([both(run("ls /etc", call_id="c1"), run("make", call_id="c2")), say("done")]),
        tools=[command_tool()],
        options=options,
        clock=HeldClock(),
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        subject = (await asked(it)).subject
        assert isinstance(subject, CommandSubject)
        assert subject.command == "source env.sh\nls /etc"
        assert (subject.argv, subject.plain) == (None, True)
        assert [one.argv for one in subject.parsed] == [("ls", "/etc")]
        it.session.permissions.answer(it.session.permissions.pending[0].request, "allowOnce")
        assert await ended(it) == ["ok", "blocked"]


async def test_a_rule_covers_git_only_while_the_repository_names_no_program(tmp_path: Path) -> None:
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text("[core]\n\tbare = false\n")
    program = str(Path("/usr/bin/git").resolve())  # noqa: ASYNC240 - as above
    rule = Rule(
        id="r", tool="bash", argv_prefix=("git", "status"), program=program,
        verdict="allow", scope="user",
    )  # fmt: skip
    keeper = MemoryRules(kept=[rule])
    standing = PermissionState(mode="ask", fallback="rules", keeper=keeper)
    await standing.refresh()
    async with bench(
        ScriptedModel([run("git status"), say("ok"), run("git status"), say("ok")]),
        tools=[command_tool()],
        standing=standing,
        root=tmp_path,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        assert await ended(it) == ["ok"]
        config.write_text("[core]\n\tfsmonitor = ./evil\n")
        await it.session.prompt("go")
        assert await ended(it) == ["ok", "blocked"]
