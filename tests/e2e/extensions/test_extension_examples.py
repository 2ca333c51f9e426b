"""The example extensions, each over LSP with a model that says what is written here."""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.office import Office, opened, soon
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import Scripted
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.lsp.lsp_subscription import Subscription

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples" / "extensions"
README_LINES = 10
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Stand:
    """Somebody in a panel, with one example installed."""

    def __init__(self, office: Office, client: RawClient, stream: Subscription) -> None:
        self.ground = office.ground
        self.office = office
        self.client = client
        self.stream = stream

    async def run(self, *turns: Json, words: str = "go") -> Json:
        """Say something, have the model answer so, and wait for the end."""
        self.ground.provider.script(turns)
        return await self.client.request("agent/prompt", prompt(words, wait=True))

    async def command(self, words: str) -> None:
        taken = await self.client.request("agent/prompt", prompt(words))
        assert taken["accepted"] == "handled"

    async def shown(self, kind: str, **view: Any) -> Json:
        """Wait for a view with these fields."""

        def found() -> list[Json]:
            told = [one["view"] for one in self.stream.of(f"ui.{kind}")]
            return [one for one in told if all(one.get(key) == view[key] for key in view)]

        await soon(found)
        return found()[-1]

    @property
    def told(self) -> Sequence[str]:
        """The results that the model was told last."""
        return tool_texts(self.ground.provider.requests[-1])

    def words(self) -> str:
        """Give what the model was sent last."""
        return json.dumps(self.ground.provider.requests[-1]["body"])


def install(ground: Ground, name: str) -> None:
    shutil.copytree(EXAMPLES / name, ground.dirs.config / "extensions" / name)


@asynccontextmanager
async def stand(ground: Ground, name: str, **settings: Any) -> AsyncGenerator[Stand]:
    ground.configure(sandbox="off", **settings)
    install(ground, name)
    async with opened(ground) as office:
        client = await office.seat(PANEL)
        stream = client.subscribe()
        await stream.ready()
        yield Stand(office, client, stream)
        assert stream.of("extension.error") == []


def repository(ground: Ground) -> Path:
    """Make a repository with one file that was changed since; gives the file."""
    path = ground.file("a.txt", "committed\n")
    for words in (
        ["init", "-q"],
        ["config", "user.name", "a"],
        ["config", "user.email", "a@b"],
        ["add", "a.txt"],
        ["commit", "-qm", "one"],
    ):
        subprocess.run(["git", *words], check=True, cwd=ground.root, env=dict(ground.env))
    path.write_text("mine\n")
    return path


def test_every_example_says_in_a_few_lines_what_it_is() -> None:
    folders = sorted(one for one in EXAMPLES.iterdir() if (one / "__init__.py").is_file())
    assert len(folders) == 10
    long = {
        one.name: count
        for one in folders
        if (count := len((one / "README.md").read_text("utf-8").splitlines())) > README_LINES + 1
    }
    assert long == {}


async def test_each_branch_has_its_own_list_of_things_to_do(ground: Ground) -> None:
    add = lambda text: calls(("todo", {"action": "add", "text": text}))  # noqa: E731
    async with stand(ground, "todo") as it:
        await it.run(add("one"), says("ok"), words="first")
        await it.run(add("two"), calls(("todo", {"action": "toggle", "number": 1})), says("ok"))
        assert it.told[-1] == "1. [x] one\n2. [ ] two"
        view = await it.shown("widget", key="todo")
        assert [one["done"] for one in view["view"]["rows"]] == [True, False]
        tree = await it.client.request("agent/session/tree", {})
        (second,) = [one["entry"] for one in tree["nodes"] if one["preview"].startswith("go")]
        await it.client.request("agent/session/navigate", {"target": second})
        await it.run(calls(("todo", {"action": "list"})), says("ok"), words="other")
        assert it.told[-1] == "1. [ ] one"
        await it.command("/todos")
        assert (await it.shown("notify"))["text"] == "1. [ ] one"
        await it.run(calls(("todo", {"action": "toggle", "number": 7})), says("ok"))
        assert it.told[-1].startswith("That is not possible.")


async def test_the_list_is_there_when_the_session_is_opened_again(ground: Ground) -> None:
    async with stand(ground, "todo") as it:
        await it.run(calls(("todo", {"action": "add", "text": "one"})), says("ok"))
    async with opened(ground) as office:
        client = await office.seat(PANEL, session={"open": "latest"})
        stream = client.subscribe()
        await stream.ready()
        again = Stand(office, client, stream)
        await again.run(calls(("todo", {"action": "list"})), says("ok"))
        assert again.told[-1] == "1. [ ] one"


async def test_extensions_hear_of_one_another_on_the_bus(ground: Ground) -> None:
    other = ground.dirs.config / "extensions" / "other.py"
    other.parent.mkdir(parents=True)
    other.write_text(
        "def extension(api):\n"
        "    heard = []\n"
        "    api.events.on('files:written', heard.append)\n"
        "    @api.command()\n"
        "    def heard_of(words, ctx):\n"
        "        ctx.ui.notify(str(heard))\n"
    )
    async with stand(ground, "event_bus") as it:
        write = ("write", {"path": "a.txt", "content": "x"})
        await it.run(calls(write, ("write", {"path": "b.txt", "content": "x"})), says("ok"))
        await it.shown("status", key="written", text="2 files written")
        await it.command("/heard-of")
        told = (await it.shown("notify"))["text"]
        assert told.count("'tool': 'write'") == 2


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param(".env", "the pattern .env", id="name"),
        pytest.param("keys/server.pem", "the pattern *.pem", id="pattern"),
        pytest.param("node_modules/a/b.js", "the folder node_modules", id="folder"),
        pytest.param("src/a.txt", None, id="free"),
    ],
)
async def test_protected_paths_are_not_written(ground: Ground, path: str, why: str | None) -> None:
    async with stand(ground, "protected_paths") as it:
        await it.run(calls(("write", {"path": path, "content": "x"})), says("ok"))
        assert (it.ground.root / path).exists() is (why is None)
        if why is not None:
            assert it.told == [f"{path} is protected by {why}; ask the user to change it."]
            assert (await it.shown("notify", level="warning"))["text"].startswith(path)


@needs_git
async def test_files_come_back_from_the_commit_of_a_run(ground: Ground) -> None:
    path = repository(ground)
    async with stand(ground, "git_checkpoint") as it:
        it.client.handlers["agent/question"] = asked = Scripted({"answers": {"answer": "0"}})
        await it.run(calls(("write", {"path": "a.txt", "content": "its own\n"})), says("ok"))
        assert path.read_text() == "its own\n"
        await it.command("/git-restore")
        assert (await it.shown("notify"))["text"].startswith("The files are as in ")
        assert path.read_text() == "mine\n"
        assert len(asked.asked[0]["questions"][0]["options"]) == 1


@needs_git
async def test_without_changes_there_is_nothing_to_give_back(ground: Ground) -> None:
    async with stand(ground, "git_checkpoint") as it:
        await it.run(says("ok"))
        await it.command("/git-restore")
        await it.shown("notify", text="No run of this branch began with changed files.")


async def test_in_plan_mode_nothing_is_changed(ground: Ground) -> None:
    write = calls(("write", {"path": "a.txt", "content": "x"}))
    async with stand(ground, "plan_mode") as it:
        await it.command("/planning")
        await it.shown("status", key="plan-mode", text="plan mode")
        await it.run(write, says("1. Write a.txt."))
        assert it.told == ["write is not run in plan mode; plan, and let the user decide."]
        assert "You are in plan mode." in it.words()
        offered = await it.client.request("agent/extension/list", {})
        assert offered["keys"] == [
            {
                "key": "ctrl+alt+p",
                "extension": "plan_mode",
                "description": "Turn plan mode on or off",
            }
        ]
        assert await it.client.request("agent/extension/press", {"key": "ctrl+alt+p"}) == {}
        await it.shown("status", key="plan-mode", text=None)
        await it.run(write, says("done"))
        assert (ground.root / "a.txt").read_text() == "x"
        assert "You are in plan mode." not in it.words()


async def test_a_flag_begins_in_plan_mode_and_says_so(ground: Ground) -> None:
    async with stand(ground, "plan_mode", extensionFlags={"plan": True}) as it:
        await it.run(calls(("bash", {"command": "touch a.txt"})), says("a plan"))
        assert not (ground.root / "a.txt").exists()
        listed = await it.client.request("agent/extension/list", {})
        assert listed["flags"] == [
            {
                "name": "plan",
                "extension": "plan_mode",
                "kind": "boolean",
                "value": True,
                "description": "Begin in plan mode",
            }
        ]


async def test_a_summary_is_written_in_its_own_way(ground: Ground) -> None:
    compaction = {"enabled": True, "keepRecentTokens": 1}
    async with stand(ground, "custom_compaction", compaction=compaction) as it:
        await it.run(says("Blue it is."), words="Which colour?")
        await it.run(says("It is blue."), words="Paint it.")
        it.ground.provider.script([says("They decided on blue.")])
        await it.client.request("agent/compact", {})
        ended = await it.stream.wait(type="compaction.ended")
        assert "They decided on blue." in json.dumps(ended)
        assert "You write notes for a colleague" in it.words()
        assert "User: Which colour?" in it.words()


async def test_secrets_in_results_reach_neither_model_nor_file(ground: Ground) -> None:
    secret = "sk-live-0123456789abcdef"
    ground.file("config.ini", f"key = {secret}\npassword=hunter2\n")
    async with stand(ground, "redact_results") as it:
        await it.run(calls(("bash", {"command": "cat config.ini"})), says("ok"))
        assert it.told[0].splitlines()[:2] == ["key = [redacted]", "password=[redacted]"]
        kept = json.dumps(ground.entries())
        assert secret not in kept
        assert "hunter2" not in kept
        ended = it.stream.of("tool.ended")
        assert secret not in json.dumps(ended)


async def test_a_model_of_ones_own_answers(ground: Ground) -> None:
    async with stand(
        ground, "custom_provider", defaultProvider="echo", defaultModel="parrot"
    ) as it:
        result = await it.client.request("agent/prompt", prompt("Hello there.", wait=True))
        assert result["status"] == "completed"
        (ended,) = [one for one in it.stream.of("message.ended") if one["role"] == "assistant"]
        assert "You said: Hello there." in json.dumps(ended)
        assert it.ground.provider.requests == []


async def test_a_second_agent_looks_and_only_its_answer_comes_back(ground: Ground) -> None:
    ground.configure(sandbox="off")
    ground.file("secret.txt", "the long way\n")
    install(ground, "subagent")
    ground.provider.script(
        [
            calls(("explore", {"task": "What is in secret.txt?"})),
            calls(("read", {"path": "secret.txt"})),
            says("It is short."),
            says("done"),
        ]
    )
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", {})
        result = await client.request("agent/prompt", prompt("go", wait=True))
        assert result["status"] == "completed"
    first, second, third, last = ground.provider.requests
    assert "What is in secret.txt?" in json.dumps(second["body"])
    tools = {one["function"]["name"] for one in second["body"]["tools"]}
    assert tools == {"read", "grep", "find", "ls"}
    assert "the long way" in json.dumps(third["body"])
    assert tool_texts(last) == ["It is short."]
    assert len(first["body"]["messages"]) < len(last["body"]["messages"])
    assert "the long way" not in json.dumps(last["body"])
