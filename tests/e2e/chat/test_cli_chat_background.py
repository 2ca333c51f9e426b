"""`tiller chat` in a terminal: commands that go on beside the conversation, and pages of the web."""

import sys

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, calls, says
from tests.support.workspace.processes import processes_with

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

CTRL_B = "\x02"
SERVER = f"exec {sys.executable} -u -m http.server --bind 127.0.0.1"


def test_a_running_command_is_moved_listed_and_stopped(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script([calls(("bash", {"command": f"{SERVER} 0"})), says("It is up.")])
    with chat(ground) as window:
        window.line("Start the server")
        _ = window.until("Serving HTTP")
        window.type(CTRL_B)
        _ = window.until("The command goes on in the background.")
        _ = window.until("It is up.")
        _ = window.until("bg1 listens on http://localhost:")
        window.line("/background")
        _ = window.until(f"bg1  $ {SERVER[:40]}")
        window.line("/background stop bg1")
        _ = window.until("Stopped bg1.")
        window.type(CTRL_B)
        _ = window.until("No command is running that could go on in the background.")
        window.line("/background go")
        _ = window.until("/background takes nothing, move, or stop and an id")
        assert leave(window) == 0
    assert not processes_with(str(ground.root), "http.server")


def test_an_end_is_shown_and_a_quit_ends_what_goes_on(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="always")
    begin = [
        calls(("bash", {"command": "sleep 1.5; exit 4", "background": True})),
        calls(("bash", {"command": "exec sleep 617", "background": True})),
    ]
    ground.provider.script([*begin, says("Both are on.")])
    with chat(ground) as window:
        window.line("Start them")
        _ = window.until("Both are on.")
        _ = window.until("bg1 in the background ended with exit code 4")
        assert leave(window) == 0
    assert not processes_with("sleep 617")


def test_a_page_is_asked_about_by_its_host_and_refused_when_it_is_private(ground: Ground) -> None:
    page = {"url": f"{ground.provider.base_url}/secret"}
    ground.configure(permission={"mode": "ask"}, defaultProjectTrust="always")
    ground.provider.script([calls(("fetch", page)), says("I cannot.")])
    with chat(ground) as window:
        window.line("Read it")
        _ = window.until("sends its arguments to 127.0.0.1")
        window.line("y")
        _ = window.until("I cannot.")
        assert "is private to this machine" in "".join(window.whole.split("\n"))
        assert leave(window) == 0
