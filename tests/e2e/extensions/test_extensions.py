"""Extensions in the real server and in the real command: a gate with and without people, and output that stays out of the way."""

import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.clients.office import Office, opened
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import Scripted
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

EXAMPLES = Path(__file__).parents[3] / "examples" / "extensions"
REMOVE = ("bash", {"command": "rm -rf build"})
LOUD = """
import os, sys

print("printed at import")

def extension(api):
    sys.stdout.write("written while registering\\n")

    @api.on("tool_result")
    def loud(event, ctx):
        print("printed in a hook")
        sys.stdout.write("written in a hook\\n")
        sys.stdout.flush()
"""

COMMANDS = """
def extension(api):
    @api.command()
    async def good(arguments, ctx):
        print("done well")

    @api.command()
    def bad(arguments, ctx):
        raise ValueError("no such branch: " + arguments)

    @api.command()
    async def ask(arguments, ctx):
        await api.send_user_message("please")
"""


def with_gate(ground: Ground) -> None:
    shutil.copytree(
        EXAMPLES / "permission_gate", ground.dirs.config / "extensions" / "permission_gate"
    )


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    with_gate(ground)
    ground.file("build/a.o", "x")
    async with opened(ground) as office:
        yield office


@pytest.mark.parametrize(
    ("option", "told", "is_left"),
    [
        pytest.param("1", "The user did not let this command run.", True, id="no"),
        pytest.param("0", "(no output)", False, id="yes"),
    ],
)
async def test_the_gate_asks_the_people_of_an_editor(
    office: Office, option: str, told: str, is_left: bool
) -> None:
    client = await office.seat(PANEL)
    client.handlers["agent/question"] = asked = Scripted({"answers": {"answer": option}})
    office.ground.provider.script([calls(REMOVE), says("done")])
    stream = client.subscribe()
    await stream.ready()
    await client.request("agent/prompt", prompt("clean up"))
    await stream.wait(type="run.ended")
    (question,) = asked.asked
    assert question["questions"][0]["text"].startswith("permission_gate: This looks dangerous:")
    assert [one["label"] for one in question["questions"][0]["options"]] == ["Yes, run it", "No"]
    assert tool_texts(office.ground.provider.requests[-1]) == [told]
    assert (office.ground.root / "build" / "a.o").exists() is is_left


def test_without_people_the_gate_blocks(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    left = ground.file("build/a.o", "x")
    ground.provider.script([calls(REMOVE), says("done")])
    gate = EXAMPLES / "permission_gate"
    ran = tiller(ground, "run", "--trust", "--json", "--extension", str(gate), "Clean up.")
    assert ran.code == 0, ran.err
    assert tool_texts(ground.provider.requests[-1]) == [
        "Dangerous command blocked: nobody can be asked here."
    ]
    assert left.exists()


def test_what_an_extension_prints_never_reaches_the_json_stream(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    loud = ground.dirs.config / "extensions" / "loud.py"
    loud.parent.mkdir(parents=True, exist_ok=True)
    loud.write_text(LOUD)
    ground.file("a.txt", "x")
    ground.provider.script([calls(("read", {"path": "a.txt"})), says("done")])
    ran = tiller(ground, "run", "--trust", "--json", "Look.")
    assert ran.code == 0, ran.err
    types = [json.loads(line)["type"] for line in ran.out.splitlines()]
    assert types[-1] == "result"
    assert "written in a hook" in ran.err


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("gone.py", "is named as an extension and is not there"),
        ("broken.py", "extension 'broken' was not loaded: SyntaxError"),
        ("empty", "is named as an extension and holds none"),
    ],
)
def test_nothing_is_run_without_an_extension_that_was_asked_for(
    ground: Ground, named: str, why: str
) -> None:
    ground.file("broken.py", "def extend(\n")
    (ground.root / "empty").mkdir()
    ran = tiller(ground, "run", "--extension", named, "Hello.")
    assert ran.code == 2
    assert f"{ground.root / named}: {why}" in ran.complaint
    assert ground.provider.requests == []


def with_commands(ground: Ground) -> None:
    path = ground.dirs.config / "extensions" / "commands.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(COMMANDS)


def test_a_command_that_fails_is_said_and_fails_the_run(ground: Ground) -> None:
    with_commands(ground)
    ran = tiller(ground, "run", "/bad feature")
    assert (ran.code, ran.out) == (1, "")
    assert "/bad failed: ValueError: no such branch: feature (" in ran.err
    assert "extensions/commands.py, line 9)\n" in ran.err
    assert "Traceback" not in ran.err
    as_json = tiller(ground, "run", "--json", "/bad feature")
    assert as_json.code == 1
    (failed,) = [line for line in as_json.lines if line["type"] == "extension.error"]
    assert (failed["extension"], failed["event"]) == ("/bad", "command")
    assert ground.provider.requests == []


def test_a_command_that_does_its_work_ends_with_0(ground: Ground) -> None:
    with_commands(ground)
    assert tiller(ground, "run", "/good").code == 0


def test_a_command_whose_run_fails_ends_as_the_run(ground: Ground) -> None:
    ground.configure(retry={"enabled": False})
    with_commands(ground)
    ground.provider.script([says("Here you are."), {"status": 400}])
    ran = tiller(ground, "run", "/ask")
    assert (ran.code, ran.out) == (0, "Here you are.\n")
    assert tiller(ground, "run", "/ask").code == 1


def test_a_command_that_does_not_exist_is_not_sent_to_the_model(ground: Ground) -> None:
    with_commands(ground)
    ran = tiller(ground, "run", "/god feature")
    message = "Unknown command /god. Did you mean /good? To send it as text, start with a space"
    assert (ran.code, message in ran.complaint) == (2, True)
    assert ground.provider.requests == []
    ground.provider.script([says("It is wrong."), says("As you like.")])
    assert tiller(ground, "run", "/etc/hosts is wrong").code == 0
    assert tiller(ground, "run", " /god feature").code == 0
    assert len(ground.provider.requests) == 2
