"""An agent that keeps to nothing ends its task with one sentence, and nothing hangs."""

import pytest

from tests.support.acp.agent_office import AgentOffice, liar

pytestmark = pytest.mark.timeout(60)

SILENT = frozenset({"silent", "never answers", "never ends"})
QUICK = {"startTimeoutS": 3, "idleTimeoutS": 2}


@pytest.mark.parametrize(
    ("habit", "why"),
    [
        ("silent", "it did not answer initialize within 3 s; check externalAgents.robot.command"),
        ("error", "it answered initialize with error -32603: no disk"),
        ("version", "it speaks version 7 of the Agent Client Protocol, Tiller speaks 1"),
        ("login", "it wants a login first (Authentication required); log in with its own command"),
        ("no session", "it opened a session without an id: None"),
        ("dies", "it ended with exit code 3 before it had answered; it wrote last: out of memory"),
        ("huge line", "it sent a line of more than 8388608 bytes"),
        ("no json", "it sent a line that is not JSON (Expecting value: line 1 column 29"),
        (
            "noise",
            "it writes other text than messages to its standard output; it wrote last: ",
        ),
        ("endless text", "it wrote more than 2,000,000 characters in one answer"),
        ("unknown end", "it ended its work with an unknown reason: 'tired'"),
        ("refuses", "it refused the task"),
        (
            "never answers",
            "it sent nothing for 2 s and was stopped (externalAgents.robot.idleTimeoutS)",
        ),
        ("never ends", "it sent nothing for 2 s and was stopped"),
    ],
)
async def test_a_failure_is_one_sentence(office: AgentOffice, habit: str, why: str) -> None:
    office.agents(robot=liar(habit, **(QUICK if habit in SILENT else {})))
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"])
    first = report.splitlines()[0]
    assert first.startswith(f"Task t1 (do it) failed: external agent 'robot': {why}")
    (task,) = office.tasks
    assert task.state == "failed"


async def test_messages_of_wrong_types_are_ignored_and_unknown_requests_are_answered(
    office: AgentOffice,
) -> None:
    office.agents(robot=liar("wrong types"))
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"])
    assert report.endswith("answered [-32601, -32602, -32602]")


async def test_a_program_that_is_not_there_is_named(office: AgentOffice) -> None:
    office.agents(robot={"command": "no-such-agent"})
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"])
    assert "failed: external agent 'robot': it could not be started: " in report
    assert "no-such-agent" in report


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"env": {"KEY": "${NOT_SET_HERE}"}},
            "(externalAgents.robot.env): the variable NOT_SET_HERE is not set",
        ),
        ({"env": {"LD_PRELOAD": "/x.so"}}, "LD_PRELOAD makes programs run other code"),
    ],
)
async def test_a_variable_that_it_cannot_have_is_named(
    office: AgentOffice, settings: dict[str, object], why: str
) -> None:
    office.agents(robot=liar("refuses", **settings))
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"])
    assert why in report
