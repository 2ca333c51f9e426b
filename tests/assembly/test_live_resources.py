"""Skills and templates reach the model as they are now, the project's only as they were trusted."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import Notice
from agent_core.hooks import Hook, HookTable, ResourcesGiven, ResourcesSought
from agent_core.session import AgentSession
from tests.assembly.test_trust import Office
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder

SKILL = "---\ndescription: {0}\n---\nThe body of {0}.\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


class Desk(Office):
    """A session whose model only listens."""

    async def say(self, session: AgentSession, words: str, option: str | None = None) -> str:
        """Say something; gives what the provider was sent."""
        self.lab.script([{"text": "done"}])
        reader = session.subscribe()
        receipt = await session.prompt(words)
        async for stamped in reader:
            event: Any = stamped.event
            self.events.append(event)
            if type(event).__name__ == "PermissionRequested":
                assert option is not None, "nobody expected a question"
                session.permissions.answer(event.request.request, option)
            if type(event).__name__ == "RunEnded":
                break
        reader.close()
        assert receipt.run is not None
        return json.dumps(self.lab.requests[-1]["body"])


@pytest.fixture
def desk(folder: Folder, lab: LoopbackProvider) -> Desk:
    desk = Desk(folder, lab)
    desk.configure()
    write(folder.dirs.config / "skills/own/SKILL.md", SKILL.format("yours"))
    write(folder.dirs.config / "prompts/mend.md", "Mend $1.")
    write(folder.root / ".tiller/skills/ours/SKILL.md", SKILL.format("ours"))
    return desk


async def test_before_trust_only_the_users_own_are_there(desk: Desk) -> None:
    async with desk.session() as session:
        sent = await desk.say(session, "/skill:ours", "rejectOnce")
        assert "The body of ours." not in sent
        assert "/skill:ours" in sent
        assert "<description>yours</description>" in sent
        assert "<description>ours</description>" not in sent
        names = [command.name for command in await session.resources.refresh()]
        assert names == ["skill:own", "mend"]


async def test_a_yes_to_the_question_counts_for_the_very_words_that_led_to_it(desk: Desk) -> None:
    async with desk.session() as session:
        sent = await desk.say(session, "/skill:ours now", "allowProject")
        assert "The body of ours." in sent
        assert "<description>ours</description>" in sent
        assert len(desk.asked()) == 1
        assert await desk.say(session, '/mend "the roof"') != sent
        assert "Mend the roof." in json.dumps(desk.lab.requests[-1]["body"])


async def test_a_no_is_asked_for_once_in_a_run(desk: Desk) -> None:
    async with desk.session() as session:
        _ = await desk.say(session, "/skill:ours now", "rejectOnce")
    assert len(desk.asked()) == 1


async def test_a_change_counts_from_the_next_prompt(desk: Desk) -> None:
    path = desk.folder.dirs.config / "prompts/mend.md"
    async with desk.session() as session:
        assert "Mend it." in await desk.say(session, "/mend it", "rejectOnce")
        path.write_text("Repair $1.", "utf-8")
        assert "Repair it." in await desk.say(session, "/mend it", "rejectOnce")
        path.unlink()
        assert '"/mend it"' in await desk.say(session, "/mend it", "rejectOnce")


async def test_what_is_wrong_is_told_when_the_session_is_opened(desk: Desk) -> None:
    path = write(desk.folder.dirs.config / "skills/bad/SKILL.md", "---\nname: x\n---\n")
    async with desk.session() as session:
        reader = session.subscribe()
        told = [one.event.text for one in reader.take_now() if isinstance(one.event, Notice)]
        reader.close()
    assert [text for text in told if str(path) in text] == [
        f"{path}:1: it has no description; the skill is left out"
    ]


async def test_settings_turn_the_commands_of_skills_off(desk: Desk) -> None:
    desk.configure(enableSkillCommands=False)
    async with desk.session() as session:
        names = [command.name for command in await session.resources.refresh()]
        assert names == ["mend"]
        sent = await desk.say(session, "/skill:own", "rejectOnce")
        assert "The body of yours." not in sent
        assert "<description>yours</description>" in sent


async def test_settings_that_change_are_in_force_after_a_reload(desk: Desk) -> None:
    more = write(desk.folder.root.parent / "more/a/SKILL.md", SKILL.format("more")).parent.parent
    async with desk.session() as session:
        desk.configure(skills=[str(more)], permission={"mode": "plan"}, steeringMode="all")
        loaded = await session.resources.reload()
        assert ("settings", "settings.json") in {(one.kind, one.name) for one in loaded.resources}
        assert "skill:a" in {command.name for command in session.resources.commands()}
        config = session.info.config
        assert (config.mode, config.steering) == ("plan", "all")
        assert session.info.allowed_mode == "plan"
        desk.configure(permission={"mode": "auto"})
        _ = await session.resources.reload()
        assert session.info.config.mode == "auto"


async def test_what_a_person_chose_is_not_undone_by_a_reload_but_is_held_to_the_settings(
    desk: Desk,
) -> None:
    desk.configure(permission={"mode": "auto"})
    async with desk.session() as session:
        _ = session.info.configure(mode="ask", steering="all")
        desk.configure(permission={"mode": "auto"}, retry={"maxRetries": 1})
        _ = await session.resources.reload()
        assert (session.info.config.mode, session.info.config.steering) == ("ask", "all")
        desk.configure(permission={"mode": "plan"})
        _ = await session.resources.reload()
        assert session.info.config.mode == "plan"


async def test_places_that_a_hook_gives_are_looked_in_and_asked_for_again(desk: Desk) -> None:
    more = write(desk.folder.root.parent / "more/a/SKILL.md", SKILL.format("more")).parent.parent
    asked: list[str] = []

    async def give(sought: ResourcesSought, _: object) -> ResourcesGiven | None:
        asked.append(sought.reason)
        return ResourcesGiven(skills=(str(more),)) if len(asked) == 1 else None

    hooks = HookTable()
    hooks.add(Hook("giver", give), at=ResourcesSought)
    request = SessionRequest(workspace=desk.folder.root, env=desk.folder.env, hooks=hooks)
    async with open_session(request) as session:
        assert "skill:a" in {command.name for command in session.resources.commands()}
        _ = await session.resources.reload()
        assert "skill:a" not in {command.name for command in session.resources.commands()}
    assert asked == ["startup", "reload"]


async def test_words_of_a_program_are_not_written_out(desk: Desk) -> None:
    desk.lab.script([{"text": "done"}, {"text": "done"}])
    async with desk.folder.open(model=None, trusted=True) as session:
        _ = await session.prompt("/mend roof", source="program")
        _ = await session.wait_idle()
        sent = json.dumps(desk.lab.requests[-1]["body"])
        assert "/mend roof" in sent
        assert "Mend roof." not in sent
        _ = await session.prompt("/mend roof")
        _ = await session.wait_idle()
        assert "Mend roof." in json.dumps(desk.lab.requests[-1]["body"])


async def test_each_file_of_the_user_counts_from_the_next_prompt(desk: Desk) -> None:
    config = desk.folder.dirs.config
    files = {
        "AGENTS.md": "Speak of {0}.",
        "APPEND_SYSTEM.md": "Append {0}.",
        "skills/own/SKILL.md": SKILL.format("skill-{0}"),
        "mcp.json": '{{"mcpServers": {{"{0}": {{"url": 7}}}}}}',
    }
    desk.configure(defaultProjectTrust="never")
    async with desk.session() as session:
        for version in ("one", "two", "six"):
            for name, text in files.items():
                _ = write(config / name, text.format(version))
            sent = await desk.say(session, f"prompt {version}")
            assert f"Speak of {version}." in sent
            assert f"Append {version}." in sent
            assert f"skill-{version}" in sent
            notices = [one.text for one in desk.events if isinstance(one, Notice)]
            assert any(f"'{version}'" in text for text in notices), notices
        for name in files:
            (config / name).unlink()
        desk.events.clear()
        sent = await desk.say(session, "prompt without files")
        assert "(nothing any more)" in sent
        assert not [one for one in desk.events if isinstance(one, Notice)]


async def test_each_file_of_a_workspace_counts_from_the_next_prompt_as_it_was_trusted(
    desk: Desk,
) -> None:
    root = desk.folder.root
    files = {
        "AGENTS.md": "Speak of {0}.",
        ".tiller/APPEND_SYSTEM.md": "Append {0}.",
        ".tiller/skills/ours/SKILL.md": SKILL.format("skill-{0}"),
    }
    async with desk.session() as session:
        for version, option in (
            ("one", "allowProject"),
            ("two", "allowSession"),
            ("six", "rejectOnce"),
        ):
            for name, text in files.items():
                _ = write(root / name, text.format(version))
            sent = await desk.say(session, f"prompt {version}", option)
            counts = option != "rejectOnce"
            assert (f"Speak of {version}." in sent) is counts
            assert (f"Append {version}." in sent) is counts
            assert (f"skill-{version}" in sent) is counts
        for name, text in files.items():
            _ = write(root / name, text.format("two"))
        assert "Speak of two." in await desk.say(session, "as it was trusted again")


async def test_a_file_that_changes_during_the_question_about_trust_counts_as_it_is_then(
    desk: Desk,
) -> None:
    own = desk.folder.dirs.config / "AGENTS.md"
    _ = write(own, "Before the question.")
    async with desk.session() as session:
        reader = session.subscribe()
        desk.lab.script([{"text": "done"}])
        _ = await session.prompt("go")
        async for stamped in reader:
            event: Any = stamped.event
            if type(event).__name__ == "PermissionRequested":
                _ = write(own, "During the question.")
                session.permissions.answer(event.request.request, "allowProject")
            if type(event).__name__ == "RunEnded":
                break
        reader.close()
    sent = json.dumps(desk.lab.requests[-1]["body"])
    assert "During the question." in sent
    assert "Speak in verse." in sent
