"""Commands in a chat."""

import pytest

from tests.support.channels.bridges import Chat, answered, bridged
from tests.support.clients.server import Ground, calls, says
from tiller_server.channels.bridge.admission import command_of
from tiller_server.channels.bridge.config import ChatWorkspace

pytestmark = [pytest.mark.timeout(60)]
WAIT = calls(("bash", {"command": "while [ ! -e go ]; do sleep 0.02; done"}))


async def line_of(chat: Chat, text: str, *, sender: str = "ann") -> str:
    """Send a command and return its answer."""
    before = len(chat.platform.texts())
    chat.platform.write(text, sender=sender)
    await chat.until(lambda: len(chat.platform.texts()) > before)
    return chat.platform.texts()[-1]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", ("stop", "")),
        ("  /Model  a/b ", ("model", "a/b")),
        ("/queue first\nsecond", ("queue", "first\nsecond")),
        ("/queue\nfirst second", ("queue", "first second")),
        ("/skill:review x", None),
        ("stop", None),
        ("/ stop", None),
        ("see /stop", None),
    ],
)
def test_a_command_is_its_name_at_the_begin_of_a_message(
    text: str, command: tuple[str, str] | None
) -> None:
    read = command_of(text)
    assert (None if read is None else (read.name, read.argument)) == command


async def test_commands_before_the_first_prompt_say_that_there_is_no_session(
    ground: Ground,
) -> None:
    async with bridged(ground) as chat:
        for command in ("/stop", "/status", "/compact", "/model", "/diff"):
            assert (await line_of(chat, command)).startswith("There is no session here yet.")
        assert "/approve CODE" in await line_of(chat, "/help")
        assert ground.sessions() == []


async def test_new_starts_another_session(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with bridged(ground) as chat:
        await answered(chat, chat.platform.write("first").key)
        assert await line_of(chat, "/new") == "A new session was started in shop."
        await answered(chat, chat.platform.write("second").key)
        assert len(ground.sessions()) == 2
        assert len(await chat.rows("bindings")) == 1
        assert len(ground.provider.requests[-1]["body"]["messages"]) < 4


async def test_stop_ends_the_run_and_drops_what_waits(ground: Ground) -> None:
    ground.provider.script([WAIT, says("never")])
    async with bridged(ground) as chat:
        first = chat.platform.write("begin")
        await ground.provider.requests_arrived(1)
        second = chat.platform.write("/queue and then that")
        await chat.until(lambda: chat.platform.messages[second.key].reactions == ["started"])
        chat.platform.write("/stop")
        await answered(chat, first.key, "aborted")
        await answered(chat, second.key, "aborted")
        await chat.until_settled()
        assert "Stopped." in "".join(chat.platform.texts())
        assert len(ground.provider.requests) == 1


async def test_queue_sends_a_prompt_when_the_run_has_ended(ground: Ground) -> None:
    ground.provider.script([WAIT, says("one"), says("two")])
    async with bridged(ground) as chat:
        first = chat.platform.write("begin")
        await ground.provider.requests_arrived(1)
        second = chat.platform.write("/queue and then that")
        await chat.until(lambda: chat.platform.messages[second.key].reactions == ["started"])
        ground.file("go", "")
        await answered(chat, first.key)
        await answered(chat, second.key)
        assert "\n".join(chat.platform.texts()).split() == ["one", "two"]


async def test_status_model_and_diff_show_the_session(ground: Ground) -> None:
    ground.commit()
    edit = calls(("write", {"path": "a.txt", "content": "new\n"}))
    big = calls(("write", {"path": "b.txt", "content": "line of text\n" * 1000}))
    ground.provider.script([edit, says("one"), big, says("two")])
    async with bridged(ground) as chat:
        await answered(chat, chat.platform.write("go").key)
        status = await line_of(chat, "/status")
        assert "workspace shop" in status
        assert "State: idle" in status
        models = await line_of(chat, "/model")
        assert models.startswith("Model: lab/")
        refused = await line_of(chat, "/model nobody/nothing")
        assert refused.startswith("/model failed: ")
        diff = await line_of(chat, "/diff")
        assert diff.startswith("```diff")
        assert "+new" in diff
        await answered(chat, chat.platform.write("more").key)
        chat.platform.write("/diff")
        await chat.until(lambda: chat.platform.ours(kind="file"))
        (file,) = chat.platform.ours(kind="file")
        assert file.file is not None
        assert file.file[0] == "changes.diff"
        assert b"+line of text" in file.file[1]
        assert (await line_of(chat, "/compact")).startswith(
            ("Nothing to compact", "The older part")
        )


async def test_an_administrator_binds_a_chat_to_a_workspace_of_the_list(ground: Ground) -> None:
    other = ground.root.parent / "other"
    other.mkdir()
    workspaces = (
        ChatWorkspace(name="shop", folder=ground.root),
        ChatWorkspace(name="other", folder=other),
    )
    ground.provider.script([says("one"), says("two")])
    async with bridged(ground, workspaces=workspaces) as chat:
        await answered(chat, chat.platform.write("first").key)
        refused = await line_of(chat, "/bind other")
        assert refused == "Only an administrator may bind a chat to a workspace."
        unknown = await line_of(chat, "/bind /etc", sender="boss")
        assert unknown == "There is no workspace '/etc'. Workspaces: shop, other"
        bound = await line_of(chat, "/bind other", sender="boss")
        assert bound == "This chat works in other from now on."
        await answered(chat, chat.platform.write("second").key)
        (binding, *_) = await chat.rows("bindings")
        assert binding["workspace"] == "other"
        assert len(ground.sessions()) == 2
