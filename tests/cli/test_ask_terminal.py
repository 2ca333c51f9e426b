"""The person at the terminal: what is shown, what allows, and what is asked again."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agent_core.channels import PermissionChoice, serve_channel
from agent_core.events import (
    CommandSubject,
    Event,
    PermissionOption,
    PermissionRequest,
    PermissionSubject,
    QuestionLine,
    QuestionOption,
    TargetSubject,
    ToolEnded,
    TrustSubject,
)
from agent_core.kernel import ItemId, SessionId
from agent_core.tools import text_result
from tests.support.harness.clock import HeldClock
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool
from tiller_server.cli.terminal.permission_prompt import (
    TerminalChannel,
    read_reply,
)


async def work(arguments, context):
    return text_result("ran")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["y\n"], "ok"),
        (["Y"], "ok"),
        (["yes\n"], "ok"),
        ([" YES \n"], "ok"),
        (["n\n"], "blocked"),
        (["no\n"], "blocked"),
        (["\n"], "blocked"),
        ([""], "blocked"),
        (["r\n", "y\n"], "ok"),
        (["t\n", "what?", "n\n"], "blocked"),
        (["yes please\n", "y\n"], "ok"),
        (["yes, but with pnpm\n", "n\n"], "blocked"),
        (["please go on\n"], "blocked"),
    ],
)
async def test_only_a_clear_yes_allows_and_an_unclear_answer_is_asked_again(
    lines: list[str], status: str
) -> None:
    written, ended, _ = await _asked(lines)
    assert [one.status for one in ended] == [status]
    assert len(written) == len(lines)
    assert all("is not an answer. Type y or n, or several words" in one for one in written[1:])


async def test_a_question_shows_its_exact_bytes_and_which_answer_enter_takes() -> None:
    written, _, _ = await _asked(["n\n"])
    assert "make <U+001B>[2Kx" in written[0]
    assert "[y] Allow once\n" in written[0]
    assert "[n] Reject (Enter)\n" in written[0]


async def test_words_typed_at_a_question_refuse_it_and_are_told_to_the_model() -> None:
    _, ended, heard = await _asked(["use pnpm instead\n"])
    assert [one.status for one in ended] == ["blocked"]
    assert "They said: use pnpm instead" in heard


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("y", "allowProject"),
        ("yes", "allowProject"),
        ("p", "allowProject"),
        ("s", "allowSession"),
        ("no", "rejectOnce"),
        ("", "rejectOnce"),
        ("never", "rejectAlways"),
        ("t", None),
        ("trust it", None),
    ],
)
def test_yes_trusts_a_folder_and_words_are_asked_again(line: str, reply: str | None) -> None:
    assert read_reply(TRUST, line) == (None if reply is None else PermissionChoice(option=reply))


def test_what_is_too_long_to_be_read_is_not_allowed_by_yes() -> None:
    long = TrustSubject(
        folder=Path("/" + "x" * 9_000), added=(), removed=(), changed=(), difference=""
    )
    request = _request(long)
    assert read_reply(request, "y") is None
    assert read_reply(request, "n") == PermissionChoice(option="rejectOnce")


async def test_a_command_of_several_lines_and_an_edit_are_shown_line_by_line() -> None:
    command = CommandSubject(
        argv=None,
        command="cat <<E\n\ta\x1b[2K\nE\n",
        cwd=Path("/w"),
        plain=False,
        sandbox="full",
        parsed=(),
    )
    (text,) = await _written(_request(command))
    assert "(containment: full)\n    cat <<E\n        a<U+001B>[2K\n    E\nWhy" in text
    edits = [{"oldText": "one\ntwo", "newText": "three\x0c\u2028\r"}]
    edit = TargetSubject(
        type="edit",
        tool="edit",
        sandbox="full",
        path=Path("/w/a.py"),
        input={"path": "a.py", "edits": edits},
    )
    (text,) = await _written(_request(edit))
    assert "/w/a.py\n" in text
    assert "    - one\n    - two\n    + three<U+000C><U+2028><U+000D>\n" in text
    content = "".join(f"{number}\n" for number in range(100))
    write = TargetSubject(
        type="edit", tool="write", sandbox="full", path=Path("/w/b.py"), input={"content": content}
    )
    (text,) = await _written(_request(write))
    assert "    + 39\n    … 60 more lines\n" in text
    other = TargetSubject(type="mcp", tool="send", sandbox="full", input={"content": "hello"})
    (text,) = await _written(_request(other))
    assert "content: hello\n" in text
    assert "+ hello" not in text


async def _written(request: PermissionRequest) -> list[str]:
    """Ask, answer with no, and return what was written."""
    written: list[str] = []

    async def typed() -> str:
        return "n\n"

    channel = TerminalChannel(
        read_line=typed, write_question=written.append, write_note=written.append
    )
    _ = await channel.ask_permission(request)
    return written


def _request(subject: PermissionSubject) -> PermissionRequest:
    return PermissionRequest(
        request="r",
        session=SessionId("s"),
        run=None,
        item=ItemId("i"),
        title="Trust x?",
        description=None,
        risk="high",
        since_ms=0,
        expires_ms=None,
        subject=subject,
        options=(
            PermissionOption(id="allowProject", kind="allowProject", label="Trust this folder"),
            PermissionOption(id="allowSession", kind="allowSession", label="In this session"),
            PermissionOption(id="rejectOnce", kind="rejectOnce", label="Read only for now"),
            PermissionOption(id="rejectAlways", kind="rejectAlways", label="Never trust it"),
        ),
        default="rejectOnce",
    )


TRUST = _request(TrustSubject(folder=Path("/x"), added=(), removed=(), changed=(), difference=""))


async def _asked(lines: Sequence[str]) -> tuple[list[str], list[ToolEnded], str]:
    """Answer the question about a command; returns what was written, how the call ended, and what the model heard."""
    written: list[str] = []
    events: list[Event] = []
    model = ScriptedModel([call("bash", {"command": "make \x1b[2Kx"}), say("ok")])
    tool = FunctionTool("bash", work, kind="execute")
    left = iter(lines)

    async def typed() -> str:
        return next(left)

    async with (
        bench(model, tools=[tool], mode="ask", clock=HeldClock()) as it,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_ask, it.session, typed, written)
        await anyio.lowlevel.checkpoint()
        await it.session.prompt("go")
        events += await it.idle()
        group.cancel_scope.cancel()
    heard = str(model.requests[-1])
    return written, [one for one in events if isinstance(one, ToolEnded)], heard


async def _ask(session, typed, written) -> None:
    write = written.append
    channel = TerminalChannel(read_line=typed, write_question=write, write_note=write)
    await serve_channel(channel, session)


async def test_an_answer_of_another_client_is_a_note_and_disturbs_no_line_being_typed() -> None:
    questions: list[str] = []
    notes: list[str] = []

    async def typed() -> str:
        await anyio.sleep_forever()
        return ""

    model = ScriptedModel([call("bash", {"command": "make"}), say("ok")])
    tool = FunctionTool("bash", work, kind="execute")
    async with (
        bench(model, tools=[tool], mode="ask", clock=HeldClock()) as it,
        anyio.create_task_group() as group,
    ):
        channel = TerminalChannel(
            read_line=typed, write_question=questions.append, write_note=notes.append
        )
        group.start_soon(serve_channel, channel, it.session)
        await anyio.lowlevel.checkpoint()
        await it.session.prompt("go")
        with anyio.fail_after(5):
            while not questions:
                await anyio.lowlevel.checkpoint()
            (request,) = it.session.permissions.pending
            it.session.permissions.answer(request.request, "allowOnce", by="panel")
            while not notes:
                await anyio.lowlevel.checkpoint()
        await it.idle()
        group.cancel_scope.cancel()
    assert notes == ["(answered by panel)\n"]
    channel = TerminalChannel(read_line=typed, write_question=notes.append, write_note=notes.append)
    channel.show_answered("cancelled")
    assert notes[-1] == "(cancelled)\n"
    assert len(questions) == 1


FORM = (
    QuestionLine(
        id="a",
        text="gate: which?",
        kind="choice",
        options=(QuestionOption(id="0", label="Yes"), QuestionOption(id="1", label="No")),
    ),
    QuestionLine(id="b", text="sure?", kind="confirm", default=False),
    QuestionLine(id="c", text="why?", kind="text", default="no reason"),
)


@pytest.mark.parametrize(
    ("lines", "answers"),
    [
        (["2", "y", "because"], {"a": "1", "b": True, "c": "because"}),
        (["yes", "no", "\n"], {"a": "0", "b": False, "c": "no reason"}),
        (["3", "1", "what", "\n", "x"], {"a": "0", "b": False, "c": "x"}),
        (["\n"], None),
    ],
)
async def test_a_form_is_filled_line_by_line(
    lines: list[str], answers: dict[str, object] | None
) -> None:
    written: list[str] = []
    left = iter(lines)

    async def typed() -> str:
        return next(left)

    async with (
        bench(ScriptedModel([say("ok")]), mode="ask", clock=HeldClock()) as it,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_ask, it.session, typed, written)
        await anyio.lowlevel.checkpoint()
        given = await it.session.questions.ask(FORM)
        assert given.answers == answers
        group.cancel_scope.cancel()
    assert "gate: which?\n  [1] Yes\n  [2] No\n" in written[0]
    assert next(left, None) is None
