"""`create_session`: models, thinking, tools and hooks, and which of several choices wins."""

import pytest

from agent_core import create_session
from agent_core.kernel.errors import (
    ModelUnknown,
    ToolSetInvalid,
)
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools.presets import PRESETS
from tests.support.session.folders import Folder, ask, handled, notices
from tests.support.workspace.default_tools import DEFAULT_TOOLS, without
from tests.support.workspace.tools import echo

# Model and thinking: the request, else the session, else the settings, else whatever has a key.


async def test_without_any_option_the_settings_and_keys_decide(folder: Folder) -> None:
    async with folder.open(model=None) as session:
        assert session.models.current is None
        config = session.info.config
        assert (config.model, config.thinking, config.mode) == (None, "medium", "ask")
        assert config.tools == DEFAULT_TOOLS
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


async def test_without_an_environment_that_of_the_process_counts(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (folder.env | {"ANTHROPIC_API_KEY": "k"}).items():
        monkeypatch.setenv(name, value)
    async with folder.open(model="anthropic/claude-sonnet-5-5", env=None) as session:
        assert session.models.current is not None
    with pytest.raises(ModelUnknown):
        async with folder.open(model="anthropic/claude-sonnet-5-5", env=folder.env):
            pass


async def test_a_workspace_that_nobody_vouches_for_is_only_read_and_the_program_is_told(
    folder: Folder,
) -> None:
    async with create_session(
        workspace=folder.root, env=folder.env, model="embedded/repair"
    ) as session:
        assert not session.permissions.trust.trusted
        assert [text for text in notices(session) if "create_session(trusted=True)" in text]
    async with folder.open() as session:
        assert session.permissions.trust.trusted
        assert not [text for text in notices(session) if "trusted" in text]


@pytest.mark.parametrize("leaves", [SystemExit("why"), KeyboardInterrupt(), ValueError("why")])
async def test_what_ends_the_block_comes_out_as_it_is(
    folder: Folder, leaves: BaseException
) -> None:
    with pytest.raises(type(leaves)) as left:
        async with folder.open():
            raise leaves
    assert left.value is leaves


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


@pytest.mark.parametrize("name", ["openai/gpt-5:high", "gpt-5:high", "openai/gpt-5*:high"])
async def test_a_level_in_the_name_of_the_request_wins_over_session_and_settings(
    folder: Folder, name: str
) -> None:
    folder.settings(defaultThinkingLevel="low")
    env = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(hooks=handled(), env=env) as session:
        await session.models.think("minimal")
        await ask(session)
        first = session.id
    async with folder.open(session=first, model=name, env=env) as session:
        assert session.models.current is not None
        assert session.models.current.provider == "openai"
        assert session.info.config.thinking == "high"
    async with folder.open(session=first, model=name, thinking="off", env=env) as session:
        assert session.info.config.thinking == "off"
    async with folder.open(session=first, env=env) as session:
        assert session.info.config.thinking == "minimal"


async def test_a_level_chosen_with_a_name_is_there_when_the_session_is_opened_again(
    folder: Folder,
) -> None:
    env = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(hooks=handled(), env=env) as session:
        await session.models.choose("openai/gpt-5:high")
        await ask(session)
        first = session.id
    async with folder.open(session=first, model=None, env=env) as session:
        config = session.info.config
        assert (config.model, config.thinking) == ("openai/gpt-5", "high")


async def test_a_level_that_only_a_later_version_knows_gives_way_to_the_settings(
    folder: Folder,
) -> None:
    folder.settings(defaultThinkingLevel="low")
    async with folder.open(hooks=handled()) as session:
        await session.models.think("high")
        await ask(session)
        first = session.id
    (path,) = folder.files
    path.write_text(path.read_text("utf-8").replace('"high"', '"boundless"'), "utf-8")
    async with folder.open(session=first) as session:
        assert session.info.config.thinking == "low"


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        ({"defaultProvider": "openai"}, "openai/gpt-6.1-sol"),
        ({"defaultProvider": "openai", "defaultModel": ""}, "openai/gpt-6.1-sol"),
        ({"defaultModel": "openai/gpt-5"}, "openai/gpt-5"),
        ({"defaultProvider": "openai", "defaultModel": "gpt-5"}, "openai/gpt-5"),
        ({"defaultProvider": "", "defaultModel": ""}, "anthropic/claude-opus-5-5"),
    ],
)
async def test_half_a_default_stands_for_a_model_too(
    folder: Folder, settings: dict[str, str], model: str
) -> None:
    folder.settings(**settings)
    env = folder.env | {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    async with folder.open(model=None, env=env) as session:
        assert session.info.config.model == model
        assert notices(session) == []


async def test_scoped_models_are_cycled_through_and_what_is_wrong_with_them_is_told(
    folder: Folder,
) -> None:
    folder.settings(scopedModels=["openai/gpt-5:low", "no*such", "embedded/repair", "anthropic/*"])
    env = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(env=env) as session:
        assert notices(session) == [
            "scopedModels: 'no*such' stands for no model that can be used",
            "scopedModels: 'anthropic/*' stands for no model that can be used",
        ]
        assert [one.ref for one in session.models.scoped()] == [
            "openai/gpt-5:low",
            "embedded/repair",
        ]
        chosen = await session.models.cycle("backward")
        assert chosen is not None
        assert (chosen.ref, session.info.config.thinking) == ("openai/gpt-5", "low")


async def test_what_can_be_asked_is_what_has_a_key_or_needs_none(folder: Folder) -> None:
    async with folder.open(env=folder.env | {"OPENAI_API_KEY": "k"}) as session:
        providers = {one.provider for one in session.models.available()}
        assert {"openai", "embedded"} <= providers
        assert "anthropic" not in providers
        assert {one.model.provider for one in session.models.scoped()} == {"openai"}


# Tools.


@pytest.mark.parametrize(
    ("chosen", "active"),
    [
        (None, DEFAULT_TOOLS),
        ("minimal", ("read", "write", "edit", "bash")),
        ("readonly", ("read", "grep", "find", "ls")),
        (["bash", "read"], ("read", "bash")),
        (
            "-bash",
            without(DEFAULT_TOOLS, ["bash"]),
        ),
    ],
)
async def test_tools_are_a_preset_names_or_changes(
    folder: Folder, chosen: str | list[str] | None, active: tuple[str, ...]
) -> None:
    async with folder.open(tools=chosen) as session:
        assert session.tools.active == active
        assert session.tools.all == PRESETS["default"]


async def test_tools_of_the_settings_hold_unless_the_call_names_some(folder: Folder) -> None:
    folder.settings(defaultTools=["-bash"])
    async with folder.open() as session:
        assert session.tools.active == without(DEFAULT_TOOLS, ["bash"])
    async with folder.open(tools="readonly") as session:
        assert session.tools.active == ("read", "grep", "find", "ls")


async def test_tools_that_were_chosen_in_a_session_are_there_when_it_is_opened_again(
    folder: Folder,
) -> None:
    folder.settings(defaultTools="minimal")
    async with folder.open(tools="readonly", custom_tools=[echo("mine")]) as session:
        await ask(session, "hi")
        kept = session.id
    async with folder.open(session=kept) as session:
        # What its first opener asked for held for the time that it was open.
        assert session.tools.active == ("read", "write", "edit", "bash")
        await session.tools.activate(["read", "grep"])
    async with folder.open(session=kept) as session:
        assert session.tools.active == ("read", "grep")
    async with folder.open(session=kept, custom_tools=[echo("mine")]) as session:
        assert session.tools.active == ("read", "grep", "mine")
        await session.tools.activate("mine")
    async with folder.open(session=kept, tools="readonly") as session:
        assert session.tools.active == ("read", "grep", "find", "ls")
    async with folder.open(session=kept) as session:
        assert session.tools.active == ("read", "write", "edit", "bash")
        told = "the session was with tools that are not there now: mine"
        assert told in notices(session)


@pytest.mark.parametrize("skips", [False, True])
async def test_front_ends_are_told_whether_to_offer_a_summary(
    folder: Folder, *, skips: bool
) -> None:
    folder.settings(branchSummary={"skipPrompt": skips})
    async with folder.open() as session:
        assert session.info.config.offer_branch_summary is not skips
        assert session.info.snapshot().config.offer_branch_summary is not skips


async def test_tools_of_ones_own_are_active_whatever_else_is_chosen(folder: Folder) -> None:
    async with folder.open(tools="readonly", custom_tools=[echo("mine")]) as session:
        assert session.tools.active == ("read", "grep", "find", "ls", "mine")


@pytest.mark.parametrize("wrong", ["", "nope", ["-default"]])
async def test_no_tools_or_unknown_ones_are_an_error(
    folder: Folder, wrong: str | list[str]
) -> None:
    with pytest.raises(ToolSetInvalid):
        async with folder.open(tools=wrong):
            pytest.fail("opened")
    assert folder.files == []


async def test_hooks_of_the_call_are_asked(folder: Folder) -> None:
    async with folder.open(hooks=handled(), store="memory") as session:
        reader = session.subscribe()
        await ask(session, "for the hook")
        names = {type(one.event).__name__ for one in reader.take_now()}
        assert "RunEnded" in names
        assert "TurnStarted" not in names
