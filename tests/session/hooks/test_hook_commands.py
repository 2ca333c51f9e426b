"""What hooks say to the commands of the user, and what becomes of those."""

from collections.abc import Callable

import anyio
import pytest

from agent_core.events import (
    BashEnded,
    BashOutput,
    BashStarted,
)
from agent_core.hooks import (
    CommandBlocked,
    CommandCarried,
    CommandDone,
    CommandTyped,
    Hook,
    HookTable,
)
from agent_core.kernel.errors import CommandRefused
from agent_core.messages import BashMessage
from tests.support.hooks.hook_functions import raises
from tests.support.hooks.hook_listener import Listener
from tests.support.session.sessions import bench
from tests.support.session.trees import talk

# The user's own commands.


async def test_a_hook_keeps_a_command_of_the_user_from_running() -> None:
    listener = Listener(says={CommandTyped: CommandBlocked(reason="not on this machine")})
    async with bench(talk(), hooks=listener.table) as b:
        with pytest.raises(CommandRefused, match="not on this machine"):
            await b.session.execute_bash("rm -rf /", exclude_from_context=True)
        typed = listener.one(CommandTyped)
        assert (typed.command, typed.exclude_from_context, typed.cwd) == (
            "rm -rf /",
            True,
            "/project",
        )
        assert not any(isinstance(one, BashStarted) for one in b.seen())


async def test_a_check_of_a_command_that_fails_means_no() -> None:
    table = HookTable()
    table.add(Hook("bad", raises(RuntimeError("boom"))), at=CommandTyped)
    async with bench(talk(), hooks=table) as b:
        with pytest.raises(CommandRefused, match="a check that fails means no"):
            await b.session.execute_bash("ls")


async def test_a_hook_gives_what_a_command_came_to() -> None:
    listener = Listener(says={CommandTyped: CommandDone(output="from elsewhere\n", exit_code=3)})
    async with bench(talk(), hooks=listener.table) as b:
        result = await b.session.execute_bash("ls")
        assert (result.output, result.exit_code, result.cancelled) == ("from elsewhere\n", 3, False)
        (kept,) = [one for one in b.messages if isinstance(one, BashMessage)]
        assert (kept.command, kept.output, kept.exit_code) == ("ls", "from elsewhere\n", 3)


async def test_a_hook_runs_a_command_elsewhere_and_shows_its_output() -> None:
    async def run(command: str, show: Callable[[str], None]) -> CommandDone:
        show(f"{command} there\n")
        return CommandDone(output=f"{command} there\n")

    listener = Listener(says={CommandTyped: CommandCarried(run=run)})
    async with bench(talk(), hooks=listener.table) as b:
        await b.session.execute_bash("ls")
        told = [e for e in b.seen() if isinstance(e, BashStarted | BashOutput | BashEnded)]
        assert [type(one) for one in told] == [BashStarted, BashOutput, BashEnded]


async def test_a_command_that_a_hook_cannot_run_says_so() -> None:
    listener = Listener(says={CommandTyped: CommandCarried(run=raises(RuntimeError("no route")))})
    async with bench(talk(), hooks=listener.table) as b:
        result = await b.session.execute_bash("ls")
        assert (result.output, result.exit_code) == (
            "the extension could not run it: no route",
            None,
        )


async def test_a_command_that_a_hook_runs_is_cancelled_like_any_other() -> None:
    begun = anyio.Event()

    async def run(_: str, __: Callable[[str], None]) -> CommandDone:
        begun.set()
        await anyio.sleep_forever()
        return CommandDone(output="")

    listener = Listener(says={CommandTyped: CommandCarried(run=run)})
    async with bench(talk(), hooks=listener.table) as b, anyio.create_task_group() as group:

        async def execute() -> None:
            assert (await b.session.execute_bash("ls")).cancelled

        group.start_soon(execute)
        await begun.wait()
        await b.session.abort()
