"""Standing answers are in force at once and stay so, whatever is read or written meanwhile."""

import anyio
import pytest
from typing_extensions import override

from agent_core.kernel.errors import StorageUnavailable
from agent_core.session.permissions.broker import LoadedRules, PermissionState
from agent_core.workspace.permissions.policy import Rule, named
from tests.support.session.asking import MemoryRules

DENY = named(Rule(id="", tool="bash", verdict="deny", scope="project", argv_prefix=("git", "push")))


class SlowRules(MemoryRules):
    """Gives what was kept when it was asked, later."""

    def __init__(self, *kept: Rule) -> None:
        super().__init__(kept=list(kept))
        self.reading, self.go_on = anyio.Event(), anyio.Event()

    @override
    async def load(self) -> LoadedRules:
        found = LoadedRules(rules=tuple(self.kept))
        self.reading.set()
        await self.go_on.wait()
        return found


async def test_an_answer_given_while_the_rules_are_read_stays_in_force() -> None:
    keeper = SlowRules()
    standing = PermissionState(keeper=keeper)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(standing.refresh)
        await keeper.reading.wait()
        tasks.start_soon(standing.remember, DENY)
        await anyio.wait_all_tasks_blocked()
        assert standing.rules.rules == (DENY,)
        keeper.go_on.set()
    assert standing.rules.rules == (DENY,)
    assert keeper.kept == [DENY]


async def test_a_rule_taken_away_while_the_rules_are_read_does_not_come_back() -> None:
    keeper = SlowRules(DENY)
    standing = PermissionState(keeper=keeper)
    await standing.remember(DENY)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(standing.refresh)
        await keeper.reading.wait()
        tasks.start_soon(standing.forget, DENY.id)
        await anyio.wait_all_tasks_blocked()
        assert standing.rules.rules == ()
        keeper.go_on.set()
    assert standing.rules.rules == ()
    assert keeper.kept == []


async def test_a_rule_that_could_not_be_kept_outlives_the_next_reading() -> None:
    standing = PermissionState(keeper=MemoryRules(broken=True))
    with pytest.raises(StorageUnavailable):
        await standing.remember(DENY)
    _ = await standing.refresh()
    assert [(one.id, one.scope) for one in standing.rules.rules] == [(DENY.id, "session")]
