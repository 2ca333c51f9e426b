"""`tiller chat --continue` beside an editor that has the session open: both follow one run."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio import to_thread

from tests.support.clients.server import Ground, calls, says
from tests.support.clients.shims import end_daemon, introduced
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_client import RawClient
from tests.support.programs.pty_screen import Terminal, terminal
from tests.support.session.session_files import checked_entries, read_entries, said

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

READY = "permission"
CHAT = ["chat", "--continue"]
PANEL: dict[str, Any] = {"agent": {"capabilities": {"v": 1, "permission": {}, "events": {}}}}
SLOW = {"text": "There is a lot to say. " * 8, "deltas": 80, "delta_delay_s": 0.05}
CTRL_D, ESCAPE = "\x04", "\x1b"


async def until(window: Terminal, seen: str | Callable[[str], bool]) -> str:
    return await to_thread.run_sync(window.until, seen)


async def leave(window: Terminal) -> int:
    window.type(CTRL_D)
    return await to_thread.run_sync(window.end)


async def ask(client: RawClient, text: str, *, message: str, wait: bool) -> Any:
    content = [{"type": "text", "text": text}]
    params = {"messageId": message, "content": content, "wait": wait}
    return await client.request("agent/prompt", params, timeout_s=60)


async def test_the_terminal_sees_the_run_of_the_editor_steers_it_and_stops_another(
    ground: Ground,
) -> None:
    ground.provider.script([says("First answer."), SLOW, says("Steered."), SLOW])
    async with introduced(ground, options=PANEL) as client:
        stream = client.subscribe()
        _ = await ask(client, "first question", message="m1", wait=True)
        _ = await ask(client, "tell me", message="m2", wait=False)
        await stream.wait(type="message.delta")
        with terminal(ground, CHAT, columns=100, lines=30) as window:
            picture = await until(window, "The daemon has this session open")
            assert "First answer." in picture
            _ = await until(window, "There is a lot to say.")
            window.line("and briefly")
            _ = await until(window, "Steered.")
            # The words of both came through one run, in the editor too.
            await stream.wait(type="message.ended", role="user", delivery="steer")
            await stream.wait(type="run.ended", status="completed")
            _ = await until(window, lambda seen: seen.count("done ·") >= 1)
            _ = await ask(client, "once more", message="m3", wait=False)
            _ = await until(window, "> once more")
            window.type(ESCAPE)
            _ = await until(window, "cancelled")
            await stream.wait(type="run.ended", status="cancelled")
            assert await leave(window) == 0
        assert len(ground.sessions()) == 1
    expected = ["first question", "tell me", "and briefly", "once more"]
    assert said(checked_entries(*ground.sessions())) == expected


async def test_a_question_of_the_run_is_answered_in_the_terminal(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script(
        [says("Ready."), calls(("bash", {"command": "touch one"})), says("That was it.")]
    )
    async with introduced(ground, options=PANEL) as client:
        asked = LeavesOpen()
        client.handlers |= {"agent/permission": asked, "window/showMessageRequest": asked}
        stream = client.subscribe()
        _ = await ask(client, "hello", message="m1", wait=True)
        _ = await ask(client, "touch it", message="m2", wait=False)
        await stream.wait(type="permission.requested")
        with terminal(ground, CHAT, columns=100, lines=30) as window:
            _ = await until(window, "touch one\n")
            window.line("y")
            _ = await until(window, "That was it.")
            resolved = await stream.wait(type="permission.resolved")
            assert resolved["by"] == "terminal"
            assert await leave(window) == 0
    assert (ground.root / "one").exists()


async def test_commands_change_the_shared_session_or_are_refused(
    ground: Ground,
) -> None:
    ground.provider.script([says("Ready.")])
    async with introduced(ground, options=PANEL) as client:
        stream = client.subscribe()
        _ = await ask(client, "hello", message="m1", wait=True)
        with terminal(ground, CHAT, columns=100, lines=70) as window:
            _ = await until(window, READY)
            window.line("/help")
            _ = await until(window, "The other commands work in the panel of the editor.")
            window.line("/name Repairs")
            _ = await until(window, "Title: Repairs")
            await stream.wait(type="session.title", title="Repairs")
            window.line("/permission plan")
            _ = await until(window, "Permission mode plan: read only.")
            window.line("/model")
            _ = await until(window, "Use which model? Now: lab/m")
            _ = await until(window, "▶ 2  lab/m")
            window.line("2")
            _ = await until(window, "Using lab/m")
            window.line("/think low")
            _ = await until(window, "Thinking: low")
            await stream.wait(type="session.config")
            window.line("/status")
            _ = await until(window, "permission  plan (read only)")
            window.line("/cost")
            _ = await until(window, "from the cache")
            window.line("/copy")
            _ = await until(window, "Copied the last answer (6 characters).")
            window.line("/tools")
            _ = await until(window, "/tools does not work in a session that the daemon has open")
            window.line("!echo a-$((40 + 2))")
            _ = await until(window, "a-42")
            window.line("/new")
            _ = await until(window, lambda seen: seen.count("/help shows what you can type") == 2)
            assert await leave(window) == 0
        config = (await client.request("agent/session/open", {}))["config"]
        assert config["mode"] == "plan"


async def test_the_terminal_leaves_with_a_reason_when_the_daemon_ends(ground: Ground) -> None:
    ground.provider.script([says("Ready.")])
    async with introduced(ground, options=PANEL) as client:
        _ = await ask(client, "hello", message="m1", wait=True)
        with terminal(ground, CHAT, columns=100, lines=30) as window:
            _ = await until(window, READY)
            await to_thread.run_sync(end_daemon, ground.env)
            _ = await until(window, "The connection to the daemon has ended.")
            assert await to_thread.run_sync(window.end) == 1


async def test_a_session_that_no_daemon_has_open_goes_on_in_a_copy(ground: Ground) -> None:
    ground.provider.script([says("Ready."), says("In the copy.")])
    async with ground.client() as client:
        _ = await ask(client, "hello", message="m1", wait=True)
        with terminal(ground, CHAT, columns=100, lines=30) as window:
            # The line is cut at the edge, wherever the path of the file puts it.
            _ = await until(window, lambda seen: "goesoninacopy" in "".join(seen.split()))
            _ = await until(window, READY)
            window.line("and here?")
            _ = await until(window, "In the copy.")
            _ = await until(window, "done ·")
            assert await leave(window) == 0
    assert len(ground.sessions()) == 2


async def test_background_commands_of_the_shared_session_are_listed_and_stopped(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="always")
    begin = calls(("bash", {"command": "exec sleep 618", "background": True}))
    ground.provider.script([begin, says("Ready.")])
    async with introduced(ground, options=PANEL) as client:
        stream = client.subscribe()
        _ = await ask(client, "start it", message="m1", wait=True)
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, READY)
            window.line("/background")
            _ = await until(window, "bg1  $ exec sleep 618")
            window.line("/background move")
            _ = await until(window, "No command is running that could go on in the background.")
            window.line("/background stop bg1")
            _ = await until(window, "Stopped bg1.")
            ended = await stream.wait(type="background.ended")
            assert (ended["id"], ended["by"]) == ("bg1", "user")
            window.line("/background")
            _ = await until(window, "Nothing runs in the background.")
            assert await leave(window) == 0


async def test_a_plan_of_the_shared_session_is_answered_in_the_terminal(ground: Ground) -> None:
    plan = calls(("plan", {"markdown": "# Write the note"}))
    work = calls(("write", {"path": "note.txt", "content": "done\n"}))
    ground.provider.script([plan, says("Here."), work, says("Written.")])
    async with introduced(ground, options=PANEL) as client:
        _ = await client.request("agent/session/configure", {"set": {"mode": "plan"}})
        _ = await ask(client, "plan it", message="m1", wait=True)
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, READY)
            window.line("/plan")
            _ = await until(window, "Carry out revision 1 of the plan?")
            window.line("1")
            _ = await until(window, "Written.")
            window.line("/plan")
            _ = await until(window, "No plan waits for an answer.")
            assert await leave(window) == 0
    note = await anyio.Path(ground.root / "note.txt").read_text("utf-8")
    assert note == "done\n"


async def test_changes_of_the_shared_session_are_shown_and_taken_back(ground: Ground) -> None:
    note = anyio.Path(ground.root / "note.txt")
    work = [
        calls(("write", {"path": name, "content": "done\n"})) for name in ("note.txt", "more.txt")
    ]
    ground.provider.script([work[0], says("One."), work[1], says("Two."), says("Looks good.")])
    async with introduced(ground, options=PANEL) as client:
        _ = await ask(client, "first", message="m1", wait=True)
        _ = await ask(client, "second", message="m2", wait=True)
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, READY)
            window.line("/diff")
            _ = await until(window, "+++ b/note.txt")
            window.line("/review only the names")
            _ = await until(window, "Looks good.")
            window.line("/undo")
            _ = await until(window, "Restored: more.txt")
            assert await note.exists()
            window.line("/undo")
            _ = await until(window, "Restored: note.txt")
            window.line("/undo")
            _ = await until(window, "Nothing left to undo.")
            window.line("/diff")
            _ = await until(window, "No changes in this session.")
            assert await leave(window) == 0
    assert not await note.exists()


async def test_an_undo_in_the_shared_session_keeps_what_the_user_changed_since(
    ground: Ground,
) -> None:
    note = anyio.Path(ground.root / "note.txt")
    _ = await note.write_text("one\n\n\n\ntwo\n")
    edit = ("edit", {"path": "note.txt", "edits": [{"oldText": "one", "newText": "1"}]})
    ground.provider.script([calls(edit), says("Changed.")])
    async with introduced(ground, options=PANEL) as client:
        _ = await ask(client, "change it", message="m1", wait=True)
        _ = await note.write_text("1\n\n\n\n2\n")
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, READY)
            window.line("/undo")
            _ = await until(window, "note.txt. Undo the run?")
            window.line("1")
            _ = await until(window, "Restored: note.txt")
            assert await leave(window) == 0
    assert await note.read_text() == "one\n\n\n\n2\n"


async def test_the_shared_session_goes_on_from_an_earlier_entry_and_in_a_fork(
    ground: Ground,
) -> None:
    ground.provider.script([says("One."), says("Two."), says("Another."), says("In the fork.")])
    async with introduced(ground, options=PANEL) as client:
        stream = client.subscribe()
        _ = await ask(client, "first question", message="m1", wait=True)
        _ = await ask(client, "second question", message="m2", wait=True)
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, READY)
            window.line("/export talk.md")
            _ = await until(window, "Exported to talk.md")
            window.line("/tree second")
            _ = await until(window, "Continue from which entry?")
            window.line("1")
            _ = await until(window, "Continuing before: second question")
            await stream.wait(type="leaf.moved")
            window.line(", asked anew")
            _ = await until(window, "Another.")
            _ = await until(window, "done ·")
            window.line("/fork")
            _ = await until(window, "Fork before which message?")
            window.line("2")
            _ = await until(window, lambda seen: seen.count("/help shows what you can type") == 2)
            window.line(", in a fork")
            _ = await until(window, "In the fork.")
            _ = await until(window, lambda seen: seen.count("done ·") == 2)
            assert await leave(window) == 0
    exported = await anyio.Path(ground.root / "talk.md").read_text("utf-8")
    assert "second question" in exported
    files = ground.sessions()
    first, fork = (said(read_entries(file)[1:]) for file in files)
    assert first[-1] == "second question, asked anew"
    assert fork == ["first question", "second question, asked anew, in a fork"]


async def test_the_terminal_leaves_the_shared_session_for_another_of_the_folder(
    ground: Ground,
) -> None:
    ground.provider.script([says("The older one."), says("The newer one.")])
    async with introduced(ground, options=PANEL) as client:
        _ = await ask(client, "about apples", message="m1", wait=True)
        _ = await client.request("agent/session/open", {"session": "new"})
        _ = await ask(client, "about pears", message="m2", wait=True)
        with terminal(ground, CHAT, columns=100, lines=40) as window:
            _ = await until(window, "The newer one.")
            window.line("/resume apples")
            _ = await until(window, "Continue which session, or search for which text?")
            window.line("1")
            _ = await until(window, "The older one.")
            assert await leave(window) == 0


async def test_allow_is_reported_to_have_no_effect_in_a_session_of_the_daemon(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    call = calls(("bash", {"command": "touch made"}))
    ground.provider.script([says("Ready."), call, says("Refused."), call, says("Allowed.")])
    async with introduced(ground, options=PANEL) as client:
        asked = LeavesOpen()
        client.handlers |= {"agent/permission": asked, "window/showMessageRequest": asked}
        _ = await ask(client, "hello", message="m1", wait=True)
        with terminal(ground, [*CHAT, "--allow", "touch"], columns=100, lines=30) as window:
            _ = await until(window, "--allow has no effect here")
            window.line("touch it")
            _ = await until(window, "Allow once")
            window.line("no")
            _ = await until(window, "Refused.")
            assert not (ground.root / "made").exists()
            window.line("/new")
            _ = await until(window, "/help shows what you can type")
            window.line("touch it now")
            _ = await until(window, "Allowed.")
            assert (ground.root / "made").exists()
            assert await leave(window) == 0
