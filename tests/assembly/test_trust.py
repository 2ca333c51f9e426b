"""Before a workspace is trusted it configures nothing and is only read; afterwards it does, without opening anew."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.assembly.resources import RunStartTrust
from agent_core.events import (
    Notice,
    PermissionRequested,
    SessionConfigured,
    SessionTrust,
    TrustSubject,
)
from agent_core.messages import ToolResultMessage, text_of
from agent_core.resources.trust.workspace_trust import TrustStore, WorkspaceTrust
from agent_core.session import AgentSession
from tests.support.harness.clock import FakeClock
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder

EDIT = {"tool_calls": [{"name": "write", "arguments": {"path": "new.txt", "content": "made"}}]}


class Office:
    """A session in a project that brings instructions and settings, and the person before it."""

    def __init__(self, folder: Folder, lab: LoopbackProvider) -> None:
        self.folder = folder
        self.lab = lab
        self.events: list[Any] = []
        agents, own = folder.root / "AGENTS.md", folder.root / ".tiller"
        own.mkdir()
        agents.write_text("Speak in verse.\n", encoding="utf-8")
        settings = {"steeringMode": "all", "skipOnSteer": False, "permission": {"mode": "plan"}}
        (own / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        self.agents = agents

    def configure(self, **settings: Any) -> None:
        chosen = {"defaultProjectTrust": "ask", "sandbox": "off", **settings}
        write_config(self.folder.dirs.config, self.lab, settings=chosen)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[AgentSession]:
        request = SessionRequest(workspace=self.folder.root, env=self.folder.env)
        async with open_session(request) as session:
            yield session

    async def run(self, session: AgentSession, option: str | None = None) -> list[str]:
        """Let it try to write a file, answer the question about trust, with `""` not; gives the results of its calls."""
        self.lab.script([EDIT, {"text": "done"}])
        before = len(session.info.messages)
        reader = session.subscribe()
        receipt = await session.prompt("write")
        async for stamped in reader:
            event = stamped.event
            self.events.append(event)
            if isinstance(event, PermissionRequested):
                assert isinstance(event.request.subject, TrustSubject)
                assert option is not None, "nobody expected a question"
                if option:
                    session.permissions.answer(event.request.request, option)
            if type(event).__name__ == "RunEnded":
                break
        reader.close()
        assert receipt.run is not None
        said = session.info.messages[before:]
        return [text_of(m.content) for m in said if isinstance(m, ToolResultMessage)]

    def asked(self) -> list[TrustSubject]:
        subjects = [e.request.subject for e in self.events if isinstance(e, PermissionRequested)]
        return [one for one in subjects if isinstance(one, TrustSubject)]

    def instructed(self, request: int = -1) -> bool:
        return "Speak in verse." in json.dumps(self.lab.requests[request]["body"])


@pytest.fixture
def office(folder: Folder, lab: LoopbackProvider) -> Office:
    return Office(folder, lab)


@pytest.mark.parametrize("option", ["rejectOnce", "rejectAlways"])
async def test_without_trust_nothing_is_used_and_nothing_is_changed(
    office: Office, option: str
) -> None:
    office.configure()
    async with office.session() as session:
        (refused,) = await office.run(session, option)
        assert "not trusted" in refused
        assert not (office.folder.root / "new.txt").exists()
        assert not office.instructed()
        (notice,) = [e.text for e in office.events if isinstance(e, Notice)]
        assert f"tiller trust add {office.folder.root}" in notice
        assert not session.permissions.trust.trusted
        (asked,) = office.asked()
        assert (asked.folder, asked.changed) == (office.folder.root, ())


async def test_a_yes_counts_at_once_and_for_the_next_session(office: Office) -> None:
    office.configure(permission={"mode": "auto"})
    async with office.session() as session:
        (refused,) = await office.run(session, "allowProject")
        assert "plan mode" in refused  # what the project itself asks for, which only tightens
        assert office.instructed()
        (told,) = [e for e in office.events if isinstance(e, SessionTrust)]
        assert told.items[0].trusted
        assert session.info.config.mode == "plan"
    async with office.session() as session:
        await office.run(session)
        assert session.info.config.steering == "all"
    assert len(office.asked()) == 1


async def test_a_change_is_asked_about_with_what_changed(office: Office) -> None:
    office.configure()
    async with office.session() as session:
        await office.run(session, "allowProject")
        office.agents.write_text("Speak in verse.\nRun curl.\n", encoding="utf-8")
        await office.run(session, "rejectOnce")
        assert not office.instructed()
        first, second = office.asked()
        assert first.difference == ""
        assert (second.changed, "+Run curl." in second.difference) == (("AGENTS.md",), True)
        office.agents.write_text("Speak in verse.\nRun wget.\n", encoding="utf-8")
        await office.run(session, "allowSession")
        assert office.instructed()
    assert len(office.asked()) == 3


async def test_read_only_is_asked_again_when_what_would_count_changes_or_the_user_says_so(
    office: Office,
) -> None:
    office.configure()
    async with office.session() as session:
        await office.run(session, "rejectOnce")
        await office.run(session)
        assert len(office.asked()) == 1
        assert "AGENTS.md" in await session.permissions.describe_trust()
        (office.folder.root / "CLAUDE.md").write_text("Run curl.\n", encoding="utf-8")
        await office.run(session, "rejectOnce")
        assert len(office.asked()) == 2
        assert not office.instructed()
        trust = await session.permissions.decide_trust(trusted=True, lasting=False)
        assert trust.trusted
        await office.run(session)
        assert office.instructed()
    async with office.session() as session:
        await office.run(session, "rejectOnce")
    assert len(office.asked()) == 3


async def test_a_question_that_nobody_answers_is_asked_again(office: Office) -> None:
    office.configure(permission={"timeoutS": 1})
    async with office.session() as session:
        for answer in ("", "rejectOnce"):
            (refused,) = await office.run(session, answer)
            assert "not trusted" in refused
    assert len(office.asked()) == 2


async def test_never_is_not_asked_again_and_the_command_line_can_still_trust(
    office: Office,
) -> None:
    office.configure()
    async with office.session() as session:
        await office.run(session, "rejectAlways")
        await office.run(session)
        trust = await session.permissions.decide_trust(trusted=True)
        assert trust.trusted
        await office.run(session)
        assert office.instructed()
    assert len(office.asked()) == 1


@pytest.mark.parametrize("fallback", ["rules", "deny"])
async def test_where_nobody_can_be_asked_nobody_is_waited_for(
    office: Office, fallback: str
) -> None:
    office.configure(permission={"fallback": fallback, "mode": "yolo"})
    async with office.session() as session:
        (refused,) = await office.run(session)
        assert "not trusted" in refused
        assert not office.instructed()


async def test_the_project_cannot_say_that_it_is_trusted(office: Office) -> None:
    office.configure()
    path = office.folder.root / ".tiller" / "settings.json"
    path.write_text('{"defaultProjectTrust": "always"}', encoding="utf-8")
    async with office.session() as session:
        (refused,) = await office.run(session, "rejectOnce")
        assert "not trusted" in refused


async def test_whoever_opens_it_may_vouch_or_refuse(office: Office, tmp_path: Path) -> None:
    office.configure()
    for trusted in (True, False):
        async with office.folder.open(model=None, trusted=trusted) as session:
            assert session.permissions.trust.trusted is trusted
            await office.run(session)
            assert office.instructed() is trusted


async def test_what_a_project_sets_is_in_force_at_once_and_no_longer_without_trust(
    office: Office,
) -> None:
    office.configure(budgets={"turns": 9, "minutes": 5})
    own = {
        "permission": {"mode": "plan", "timeoutS": 7},
        "budgets": {"turns": 3, "minutes": 60},
        "compaction": {"enabled": False},
        "skipOnSteer": False,
    }
    path = office.folder.root / ".tiller" / "settings.json"
    path.write_text(json.dumps(own), encoding="utf-8")
    async with office.session() as session:
        before = session.info.config
        assert before.budgets is not None
        assert (before.mode, before.budgets.turns, before.auto_compact) == ("ask", 9, True)
        await office.run(session, "allowSession")
        (told,) = [e.config for e in office.events if isinstance(e, SessionConfigured)]
        assert told == session.info.config
        assert told.budgets is not None
        # Stricter than the user, never looser.
        assert (told.budgets.turns, told.budgets.minutes) == (3, 5)
        assert (told.mode, told.auto_compact) == ("plan", False)
        await session.permissions.decide_trust(trusted=False, lasting=False)
        after = session.info.config
        assert after.budgets is not None
        assert (after.mode, after.budgets.turns) == ("plan", 9)


async def test_a_budget_that_comes_with_trust_ends_the_very_run_that_asked(office: Office) -> None:
    office.configure(budgets={"turns": 9})
    path = office.folder.root / ".tiller" / "settings.json"
    path.write_text('{"budgets": {"turns": 1}}', encoding="utf-8")
    async with office.session() as session:
        await office.run(session, "allowSession")
        result = await session.wait_idle()
        assert result is not None
        assert result.status == "budget"


async def test_rules_of_a_project_come_and_go_with_its_trust(office: Office) -> None:
    office.configure()
    rule = {"id": "no-new", "tool": "edit", "path": "new.txt", "verdict": "deny"}
    rules = {"version": 1, "rules": [rule]}
    (office.folder.root / ".tiller" / "policy.json").write_text(json.dumps(rules))
    (office.folder.root / ".tiller" / "settings.json").unlink()
    async with office.session() as session:
        assert session.permissions.rules == ()
        (refused,) = await office.run(session, "allowSession")
        assert "not trusted" not in refused
        assert not (office.folder.root / "new.txt").exists()
        assert [one.id for one in session.permissions.rules] == ["no-new"]
        await session.permissions.decide_trust(trusted=False, lasting=False)
        assert session.permissions.rules == ()


async def test_with_trust_tools_do_more_than_read(office: Office) -> None:
    office.configure()
    (office.folder.root / ".tiller" / "settings.json").unlink()
    async with office.session() as session:
        (refused,) = await office.run(session, "rejectOnce")
        assert "not trusted" in refused
        (office.folder.root / "CLAUDE.md").write_text("Be brief.\n", encoding="utf-8")
        await office.run(session, "allowSession")
        assert (office.folder.root / "new.txt").read_text() == "made"


@pytest.mark.parametrize(
    ("default", "option"), [("never", None), ("ask", "allowProject"), ("always", None)]
)
async def test_instructions_above_an_opened_folder_reach_no_model(
    office: Office, default: str, option: str | None
) -> None:
    office.configure(defaultProjectTrust=default)
    (office.folder.root.parent / "AGENTS.md").write_text("Obey the archive.\n", "utf-8")
    async with office.session() as session:
        await office.run(session, option)
        assert office.instructed() is (default != "never")
    assert "Obey the archive." not in json.dumps([one["body"] for one in office.lab.requests])


async def test_a_vouched_workspace_brings_no_instructions_from_above_it(office: Office) -> None:
    office.configure()
    (office.folder.root.parent / "AGENTS.md").write_text("Obey the archive.\n", "utf-8")
    async with office.folder.open(model=None, trusted=True) as session:
        await office.run(session)
        assert office.instructed()
    assert "Obey the archive." not in json.dumps([one["body"] for one in office.lab.requests])


async def test_the_question_names_what_would_count_also_from_a_trusted_folder_above(
    office: Office,
) -> None:
    office.configure()
    above = office.folder.root.parent
    (above / "AGENTS.md").write_text("Of the user's own.\n", "utf-8")
    trust = WorkspaceTrust(
        above,
        store=TrustStore(office.folder.dirs.data / "trust.json"),
        default="ask",
        clock=FakeClock(),
    )
    _ = await trust.check()
    _ = await trust.record("trusted", lasting=True)
    async with office.session() as session:
        await office.run(session, "allowProject")
        assert "Of the user's own." in json.dumps(office.lab.requests[-1]["body"])
        (above / "AGENTS.md").write_text("Run curl.\n", "utf-8")
        await office.run(session, "rejectOnce")
        assert not office.instructed()
    asked = [e.request for e in office.events if isinstance(e, PermissionRequested)]
    assert "Instructions that would count: ../AGENTS.md, AGENTS.md." in (asked[0].description or "")
    assert "Other files that would count: .tiller/settings.json." in (asked[0].description or "")
    first, second = office.asked()
    assert (first.changed, second.changed) == ((), ("../AGENTS.md",))
    assert "+Run curl." in second.difference


async def test_a_check_that_was_begun_counts_within_a_second_and_before_no_decision(
    folder: Folder, tmp_path: Path
) -> None:
    reads, has_read, clock = list[None](), Event(), FakeClock()

    def read() -> None:
        reads.append(None)
        has_read.set()

    workspace = WorkspaceTrust(
        folder.root, store=TrustStore(tmp_path / "trust.json"), default="ask", clock=clock
    )
    trust = RunStartTrust(workspace, [lambda: read], now_s=clock.monotonic_s)

    def begin() -> None:
        has_read.clear()
        trust.begin()
        assert has_read.wait(20)

    begin()
    clock.advance(0.9)
    assert not (await trust.check()).is_trusted
    assert len(reads) == 1
    assert not (await trust.check()).is_trusted
    assert len(reads) == 2
    begin()
    clock.advance(1.1)
    assert not (await trust.check()).is_trusted
    assert len(reads) == 4
    begin()
    assert (await trust.record("trusted", lasting=True)).is_trusted
    assert (await trust.check()).is_trusted
