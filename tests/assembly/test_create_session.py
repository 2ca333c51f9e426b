"""`create_session`: every option, which of several wins, and what happens when one of them is wrong."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agent_core import AgentSession, Hook, HookTable, create_session
from agent_core.events import Event, Notice
from agent_core.hooks.points import InputHandled
from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    ConfigError,
    ModelUnknown,
    SessionLocked,
    SessionNotFound,
    ToolSetInvalid,
    UsageError,
    WorkspaceMissing,
)
from agent_core.messages import ToolResultMessage, UserMessage, text_of
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.clock import FakeClock
from tests.support.isolation import TillerDirs
from tests.support.provider import LoopbackProvider, write_config
from tests.support.tools import echo

PATH = "/usr/bin:/bin"


class Folder:
    """A workspace and the environment in which sessions are opened there."""

    def __init__(self, root: Path, dirs: TillerDirs) -> None:
        self.root = root
        self.dirs = dirs
        self.env = {"PATH": PATH, **dirs.variables()}

    def open(self, **options: Any) -> AbstractAsyncContextManager[AgentSession]:
        given: dict[str, Any] = {
            "workspace": self.root,
            "env": self.env,
            "model": "embedded/repair",
        }
        return create_session(**(given | options))

    def write(self, name: str, text: str) -> None:
        self.dirs.config.joinpath(name).write_text(text, encoding="utf-8")

    def settings(self, **values: Any) -> None:
        self.write("settings.json", json.dumps(values))

    @property
    def files(self) -> list[Path]:
        return sorted(self.dirs.data.glob("sessions/*/*.jsonl"))


@pytest.fixture
def folder(tmp_path: Path, tiller_dirs: TillerDirs) -> Folder:
    root = tmp_path / "work"
    root.mkdir()
    return Folder(root, tiller_dirs)


@pytest.fixture(scope="module")
def lab() -> Iterator[LoopbackProvider]:
    with LoopbackProvider() as provider:
        yield provider


def heard(session: AgentSession) -> list[Event]:
    reader = session.subscribe()
    events = [one.event for one in reader.take_now()]
    reader.close()
    return events


def notices(session: AgentSession) -> list[str]:
    return [one.text for one in heard(session) if isinstance(one, Notice)]


async def ask(session: AgentSession, words: str = "go") -> None:
    await session.prompt(words)
    result = await session.wait_idle()
    assert result is not None
    assert result.status == "completed", result.error


def handled() -> HookTable:
    """Deal with every prompt, so that a session gets words without a model."""

    async def deal(_: object) -> InputHandled:
        return InputHandled()

    table = HookTable()
    table.input.append(Hook("deal", deal))
    return table


# Model and thinking: the request, else the session, else the settings, else whatever has a key.


async def test_without_any_option_the_settings_and_keys_decide(folder: Folder) -> None:
    async with folder.open(model=None) as session:
        assert session.models.current is None
        config = session.info.config
        assert (config.model, config.thinking, config.mode) == (None, "medium", "ask")
        assert config.tools == ("read", "write", "edit", "bash")
        assert (config.steering, config.follow_up) == ("one-at-a-time", "one-at-a-time")
        with pytest.raises(ModelUnknown, match="set ANTHROPIC_API_KEY or OPENAI_API_KEY"):
            await session.prompt("hi")


@pytest.mark.parametrize(
    ("variable", "provider"), [("ANTHROPIC_API_KEY", "anthropic"), ("OPENAI_API_KEY", "openai")]
)
async def test_a_key_in_the_environment_chooses_a_model(
    folder: Folder, variable: str, provider: str
) -> None:
    async with folder.open(model=None, env=folder.env | {variable: "k"}) as session:
        assert session.models.current is not None
        assert session.models.current.provider == provider


async def test_the_request_wins_over_the_settings_and_these_over_the_keys(folder: Folder) -> None:
    folder.settings(defaultProvider="embedded", defaultModel="repair", defaultThinkingLevel="low")
    env = folder.env | {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    async with folder.open(model=None, env=env) as session:
        assert (session.info.config.model, session.info.config.thinking) == (
            "embedded/repair",
            "low",
        )
    async with folder.open(model="openai/gpt-5", thinking="max", env=env) as session:
        chosen = session.info.config
        assert (chosen.model, chosen.thinking) == ("openai/gpt-5", "max")


async def test_settings_of_the_call_win_over_the_users_file(folder: Folder) -> None:
    folder.settings(defaultThinkingLevel="low", steeringMode="all", retry={"maxRetries": 9})
    above = {"defaultThinkingLevel": "high", "permission": {"mode": "yolo"}}
    async with folder.open(settings=above) as session:
        config = session.info.config
        assert (config.thinking, config.steering, config.mode) == ("high", "all", "yolo")
        assert session.info.allowed_mode == "yolo"


@pytest.mark.parametrize(
    ("model", "match"),
    [
        ("nobody/nothing", "no model is called 'nobody/nothing'"),
        ("anthropic/claude-sonnet-5-5", "set the environment variable ANTHROPIC_API_KEY"),
    ],
)
async def test_a_model_that_was_asked_for_and_cannot_be_used_is_an_error(
    folder: Folder, model: str, match: str
) -> None:
    store = MemoryStore()
    with pytest.raises(ModelUnknown, match=match):
        async with folder.open(model=model, store=store):
            pytest.fail("opened")
    assert await store.list() == ()


async def test_a_default_model_that_cannot_be_used_gives_way_and_says_so(folder: Folder) -> None:
    folder.settings(defaultProvider="nobody", defaultModel="nothing")
    async with folder.open(model=None, env=folder.env | {"OPENAI_API_KEY": "k"}) as session:
        (notice,) = notices(session)
        assert notice.startswith("the default model cannot be used: no model is called")
        assert session.models.current is not None
        assert notice.endswith(f"; using {session.models.current.ref}")
        assert notices(session) == []


# Tools.


@pytest.mark.parametrize(
    ("chosen", "active"),
    [
        (None, ("read", "write", "edit", "bash")),
        ("minimal", ("read", "write", "edit", "bash")),
        ("readonly", ("read",)),
        (["bash", "read"], ("read", "bash")),
        ("-bash", ("read", "write", "edit")),
    ],
)
async def test_tools_are_a_preset_names_or_changes(
    folder: Folder, chosen: str | list[str] | None, active: tuple[str, ...]
) -> None:
    async with folder.open(tools=chosen) as session:
        assert session.tools.active == active
        assert session.tools.all == ("read", "write", "edit", "bash")


async def test_tools_of_the_settings_hold_unless_the_call_names_some(folder: Folder) -> None:
    folder.settings(defaultTools=["-bash"])
    async with folder.open() as session:
        assert session.tools.active == ("read", "write", "edit")
    async with folder.open(tools="readonly") as session:
        assert session.tools.active == ("read",)


async def test_tools_of_ones_own_are_active_whatever_else_is_chosen(folder: Folder) -> None:
    async with folder.open(tools="readonly", custom_tools=[echo("mine")]) as session:
        assert session.tools.active == ("read", "mine")


@pytest.mark.parametrize("wrong", ["", "nope", ["-read", "-write", "-edit", "-bash"]])
async def test_no_tools_or_unknown_ones_are_an_error(
    folder: Folder, wrong: str | list[str]
) -> None:
    with pytest.raises(ToolSetInvalid):
        async with folder.open(tools=wrong):
            pytest.fail("opened")
    assert folder.files == []


# Where sessions are kept, and which one is opened.


async def test_a_session_is_a_file_once_something_was_said(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        assert folder.files == []
        await ask(session, "hello")
        (path,) = folder.files
        assert session.info.location == str(path)
        assert session.info.root == str(folder.root)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert (lines[0]["id"], lines[0]["cwd"]) == (session.id, str(folder.root))
    assert not list(path.parent.glob("*.lock"))


async def test_a_session_in_memory_leaves_no_file(folder: Folder) -> None:
    async with folder.open(store="memory", hooks=handled()) as session:
        await ask(session)
        assert session.info.location is None
    assert folder.files == []


async def test_a_session_is_opened_again_with_what_was_said_and_chosen(folder: Folder) -> None:
    keys = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(hooks=handled(), env=keys) as session:
        await session.models.choose("openai/gpt-5")
        await session.models.think("high")
        await ask(session, "remember me")
        first = session.id
    async with folder.open(session=first, model=None, env=keys) as session:
        assert session.id == first
        assert (session.info.config.model, session.info.config.thinking) == (
            "openai/gpt-5",
            "high",
        )
        assert "remember me" in str(session.info.entries)
    async with folder.open(session=first, model=None) as session:
        assert session.models.current is None
        with pytest.raises(ModelUnknown, match="the session's model cannot be used"):
            await session.prompt("hi")
    async with folder.open(session=first, thinking="off", env=keys) as session:
        assert session.info.config.model == "embedded/repair"
        assert session.info.config.thinking == "off"


async def test_latest_is_the_newest_of_this_workspace_else_a_new_one(
    folder: Folder, tmp_path: Path
) -> None:
    clock, store = FakeClock(), MemoryStore()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ids: list[SessionId] = []
    for root in (folder.root, folder.root, elsewhere):
        clock.advance(60)
        async with folder.open(
            workspace=root, store=store, clock=clock, hooks=handled()
        ) as session:
            await ask(session)
            ids.append(session.id)
    async with folder.open(session="latest", store=store, clock=clock) as session:
        assert session.id == ids[1]
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    async with folder.open(session="latest", workspace=fresh, store=store, clock=clock) as session:
        assert session.id not in ids
        assert session.info.entries == ()


async def test_latest_is_found_through_a_link_to_the_workspace(
    folder: Folder, tmp_path: Path
) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    link = tmp_path / "link"
    link.symlink_to(folder.root)
    async with folder.open(workspace=str(link), session="latest") as again:
        assert again.id == session.id


@pytest.mark.parametrize("unknown", ["0197-nope", "../../etc/passwd", "a\0b", "x" * 5000])
async def test_an_unknown_session_is_an_error(folder: Folder, unknown: str) -> None:
    with pytest.raises(SessionNotFound):
        async with folder.open(session=unknown):
            pytest.fail("opened")


@pytest.mark.parametrize("store", ["files", MemoryStore()], ids=["files", "memory"])
async def test_a_session_that_another_has_open_is_locked_until_it_is_closed(
    folder: Folder, store: Any
) -> None:
    async with folder.open(store=store, hooks=handled()) as session:
        await ask(session)
        with pytest.raises(SessionLocked):
            async with folder.open(store=store, session=session.id):
                pytest.fail("opened twice")
    async with folder.open(store=store, session=session.id) as again:
        assert again.id == session.id


async def test_a_session_that_could_not_be_built_is_not_locked(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    with pytest.raises(ToolSetInvalid):
        async with folder.open(session=session.id, tools="nope"):
            pytest.fail("opened")
    async with folder.open(session=session.id) as again:
        assert again.id == session.id


async def test_an_error_inside_leaves_the_session_closed_and_comes_out_as_it_is(
    folder: Folder,
) -> None:
    async def fail() -> None:
        async with folder.open(hooks=handled()) as session:
            await ask(session)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
    async with folder.open(session="latest") as again:
        assert "go" in str(again.info.entries)


async def test_hooks_of_the_call_are_asked(folder: Folder) -> None:
    async with folder.open(hooks=handled(), store="memory") as session:
        reader = session.subscribe()
        await ask(session, "for the hook")
        names = {type(one.event).__name__ for one in reader.take_now()}
        assert "RunEnded" in names
        assert "TurnStarted" not in names


# What is wrong with the ground.


@pytest.mark.parametrize("what", ["missing", "file", "loop"])
async def test_a_workspace_that_is_no_folder_is_an_error(
    folder: Folder, tmp_path: Path, what: str
) -> None:
    place = tmp_path / what
    if what == "file":
        place.write_text("x", encoding="utf-8")
    elif what == "loop":
        place.symlink_to(place)
    with pytest.raises(WorkspaceMissing, match=repr(str(place))):
        async with folder.open(workspace=place):
            pytest.fail("opened")
    assert folder.files == []


async def test_broken_settings_are_told_and_what_can_be_read_of_them_holds(
    folder: Folder,
) -> None:
    folder.settings(steeringMode="all", retry={"maxRetries": "many"})
    async with folder.open() as session:
        (notice,) = notices(session)
        assert notice.startswith(f"{folder.dirs.config / 'settings.json'}:1:")
        assert '"retry.maxRetries" is "many"' in notice
        assert session.info.config.steering == "all"


@pytest.mark.parametrize(
    ("text", "where"), [("{", ":1:"), ("[]", ":"), ('{"a": 1,\n"b": }', ":2:")]
)
async def test_a_settings_file_that_is_no_json_is_told_with_its_place(
    folder: Folder, text: str, where: str
) -> None:
    folder.write("settings.json", text)
    async with folder.open() as session:
        (notice,) = notices(session)
        assert notice.startswith(f"{folder.dirs.config / 'settings.json'}{where}")
        assert session.info.config.thinking == "medium"


async def test_a_broken_models_file_is_told_and_the_known_models_stay(folder: Folder) -> None:
    folder.write("models.json", '{"providers": {"lab": {"models": 7}}}')
    async with folder.open() as session:
        (notice,) = notices(session)
        path = str(folder.dirs.config / "models.json")
        assert path in notice
        assert notice.count(path) == 1
        assert session.info.config.model == "embedded/repair"


async def test_a_torn_session_file_is_told(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    (path,) = folder.files
    with path.open("ab") as file:
        file.write(b'{"type": "message", "id": "to')
    async with folder.open(session=session.id) as again:
        (notice,) = notices(again)
        assert "last line was cut off" in notice


async def test_a_relative_configuration_folder_is_refused(folder: Folder) -> None:
    with pytest.raises(UsageError, match="relative"):
        async with folder.open(env=folder.env | {"TILLER_CONFIG_DIR": "here"}):
            pytest.fail("opened")


def test_an_error_of_configuration_knows_its_place() -> None:
    error = ConfigError("no", path=Path("/x/models.json"), line=3, column=4)
    assert (str(error), error.path, error.line, error.column) == (
        "no",
        Path("/x/models.json"),
        3,
        4,
    )


# Through a provider.


def model_of(provider: LoopbackProvider, request: int = -1) -> dict[str, Any]:
    return provider.requests[request]["body"]


def system_of(body: Mapping[str, Any]) -> str:
    return next(m["content"] for m in body["messages"] if m["role"] in {"system", "developer"})


async def test_no_key_is_in_the_environment_of_a_command(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab, settings={"permission": {"mode": "yolo"}})
    path = folder.dirs.config / "models.json"
    models = json.loads(path.read_text("utf-8"))
    models["providers"]["lab"]["apiKey"] = "$LAB_SECRET"
    models["providers"]["lab"]["headers"] = {"x-team": "${TEAM_TOKEN} on $PATH"}
    path.write_text(json.dumps(models), encoding="utf-8")
    secret = {
        "LAB_SECRET": "s3cret-1",
        "TEAM_TOKEN": "s3cret-2",
        "ANTHROPIC_API_KEY": "s3cret-3",
        "ANTHROPIC_AUTH_TOKEN": "s3cret-4",
        "OPENAI_API_KEY": "s3cret-5",
    }
    lab.script(
        [
            {"tool_calls": [{"name": "bash", "arguments": {"command": "env; echo $$"}}]},
            {"text": "done"},
        ]
    )
    env = folder.env | secret | {"PLAIN": "seen"}
    async with folder.open(model=None, env=env) as session:
        await ask(session)
        (result,) = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
    shown = text_of(result.content)
    assert "PLAIN=seen" in shown
    assert f"PATH={PATH}" in shown
    assert "s3cret" not in shown
    assert "s3cret" not in folder.files[0].read_text("utf-8")


async def test_agents_md_is_in_the_system_prompt_and_a_change_counts_from_the_next_run(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab)
    folder.write("AGENTS.md", "Mine: be brief.\n")
    agents = folder.root / "AGENTS.md"
    agents.write_text("Rule one.\n", encoding="utf-8")
    lab.script([{"text": "a"}, {"text": "b"}])
    async with folder.open(model=None) as session:
        await ask(session)
        first = system_of(model_of(lab))
        assert first.index("Mine: be brief.") < first.index("Rule one.")
        agents.write_text("Rule two.\n", encoding="utf-8")
        await ask(session)
        second = system_of(model_of(lab))
    assert "Rule one." not in second
    assert "Rule two." in second


async def test_a_tool_of_ones_own_is_offered_and_called(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab)
    mine = echo("mine")
    lab.script([{"tool_calls": [{"name": "mine", "arguments": {"text": "x"}}]}, {"text": "done"}])
    async with folder.open(model=None, custom_tools=[mine], store="memory") as session:
        await ask(session)
        offered = [tool["function"]["name"] for tool in model_of(lab)["tools"]]
        assert offered == ["read", "write", "edit", "bash", "mine"]
        assert mine.calls == [{"text": "x"}]


async def test_a_session_goes_on_where_it_was(folder: Folder, lab: LoopbackProvider) -> None:
    write_config(folder.dirs.config, lab)
    lab.script([{"text": "first answer"}, {"text": "second answer"}])
    async with folder.open(model=None) as session:
        await ask(session, "first question")
    async with folder.open(model=None, session="latest") as again:
        await ask(again, "second question")
        said = [text_of(m.content) for m in again.info.messages if isinstance(m, UserMessage)]
        assert said == ["first question", "second question"]
    told = [m["content"] for m in model_of(lab)["messages"] if m["role"] != "system"]
    assert [str(one) for one in told][:2] == ["first question", "first answer"]
