"""Asks the person at the terminal whether something may be done; only a clear yes allows it."""

import os
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import anyio
from anyio import to_thread

from agent_core.events import (
    Answer,
    EventSubscription,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionLine,
    QuestionRequested,
    QuestionResolved,
    ServerSubject,
    TrustSubject,
)
from agent_core.kernel.errors import TillerError
from agent_core.kernel.text import shown
from agent_core.kernel.values import Value
from tiller_server.cli.terminal.text import one_line
from tiller_server.lsp.dialogs.permission_dialog import dialog, shortened

BY: Final = "terminal"
KEYS: Final[Mapping[str, str]] = {
    "allowOnce": "y",
    "allowRun": "r",
    "allowSession": "s",
    "allowProject": "p",
    "allowUser": "u",
    "rejectOnce": "n",
    "rejectAlways": "never",
}
"""Key for each kind of option."""
YES: Final = frozenset({"y", "yes"})
"""The first way to allow it."""
NO: Final = frozenset({"n", "no"})
MOST_BYTES: Final = 4_096
"""A terminal gives no longer line."""


class AnswerChoice(Value, frozen=True):
    """A row of the menu under a question."""

    line: str
    """The line that stands for it."""
    label: str


OfferChoices = Callable[[Sequence[AnswerChoice], int], object]
"""Shows the choices of the line that is read next, with the index of the marked one; none takes them away."""
ReadLine = Callable[[], Awaitable[str]]
WriteText = Callable[[str], object]


class PermissionAnswers(Protocol):
    """Where permission requests are answered."""

    def answer(self, request: str, option: str, *, note: str | None, by: str) -> object:
        """Answer a request."""
        ...


class QuestionAnswers(Protocol):
    """Where questions are answered."""

    def answer(self, request: str, answers: Mapping[str, Answer] | None, *, by: str) -> object:
        """Answer a question; None: the user declined."""
        ...


class AskingSession(Protocol):
    """A session that asks its user."""

    @property
    def permissions(self) -> PermissionAnswers:
        """Where permission requests are answered."""
        ...

    @property
    def questions(self) -> QuestionAnswers:
        """Where questions are answered."""
        ...

    def subscribe(self, *, partials: bool = False) -> EventSubscription:
        """Open a reader of its events; with `partials` it shows arguments as they grow."""
        ...


async def ask_on_terminal(
    session: AskingSession,
    *,
    read_line: ReadLine,
    write_question: WriteText,
    write_note: WriteText,
    offer: OfferChoices | None = None,
) -> None:
    """Ask the questions of a session, one after the other, until it is closed.

    Args:
        session: The session.
        read_line: Reads the answer.
        write_question: Writes a question or a complaint; a line is read next.
        write_note: Writes which other client answered first.
        offer: Shows the options of a request as a menu; None: they are written with it.
    """
    reader = session.subscribe()
    waiting: dict[str, anyio.CancelScope] = {}
    turn = anyio.Lock()

    async def ask(request: PermissionRequest, scope: anyio.CancelScope) -> None:
        with scope:
            async with turn:
                with _offered(request, offer, write_question):
                    while (reply := read_reply(request, line := await read_line())) is None:
                        write_question(_not_understood(request, line))
                with suppress(TillerError):
                    _ = session.permissions.answer(
                        request.request, reply.option, note=reply.note, by=BY
                    )

    async def fill(question: Question, scope: anyio.CancelScope) -> None:
        with scope:
            async with turn:
                answers = await _filled(question, read_line=read_line, write=write_question)
                with suppress(TillerError):
                    _ = session.questions.answer(question.request, answers, by=BY)

    try:
        async with anyio.create_task_group() as group:
            async for stamped in reader:
                match stamped.event:
                    case PermissionRequested(request=request):
                        scope = waiting[request.request] = anyio.CancelScope()
                        group.start_soon(ask, request, scope)
                    case QuestionRequested(request=question):
                        scope = waiting[question.request] = anyio.CancelScope()
                        group.start_soon(fill, question, scope)
                    case QuestionResolved(request=request):
                        waiting.pop(request, anyio.CancelScope()).cancel()
                    case PermissionResolved(request=request, by=by):
                        waiting.pop(request, anyio.CancelScope()).cancel()
                        if by != BY:
                            write_note(f"(answered by {by})\n")
                    case _:
                        pass
            group.cancel_scope.cancel()
    finally:
        reader.close()


async def _filled(
    question: Question, *, read_line: ReadLine, write: WriteText
) -> dict[str, Answer] | None:
    """Ask the lines of a form, one after the other; None: it is declined."""
    answers: dict[str, Answer] = {}
    for line in question.questions:
        write(_line_shown(line))
        while typed := (await read_line()).strip():
            answer = read_answer(line, typed)
            if answer is not None:
                answers[line.id] = answer
                break
            write(f"{one_line(typed)!r} is not an answer. {_wanted(line)}.\n? ")
        if not typed and line.default is None:
            return None
    return answers


def read_answer(line: QuestionLine, typed: str) -> Answer | None:
    """Return the answer to a line of a form; None: it is none."""
    word = typed.casefold()
    match line.kind:
        case "text":
            return typed
        case "confirm":
            return True if word in YES else False if word in NO else None
        case "choice":
            if typed.isdecimal() and 0 < int(typed) <= len(line.options):
                return line.options[int(typed) - 1].id
            same = [one.id for one in line.options if one.label.casefold() == word]
            return same[0] if len(same) == 1 else None


def _line_shown(line: QuestionLine) -> str:
    options = [
        f"  [{number}] {shown(one.label)}{f': {shown(one.description)}' if one.description else ''}"
        for number, one in enumerate(line.options, 1)
    ]
    return "\n".join(("", shown(line.text), *options, f"  {_wanted(line)}", "? "))


def _wanted(line: QuestionLine) -> str:
    what = {"confirm": "Type y or n", "choice": "Type a number", "text": "Type the answer"}
    enter = "declines" if line.default is None else "takes what counts otherwise"
    return f"{what[line.kind]}; Enter {enter}"


class TerminalPermissionReply(Value, frozen=True):
    """Answer to a permission request."""

    option: str
    note: str | None = None
    """Words for the model."""


def read_reply(request: PermissionRequest, line: str) -> TerminalPermissionReply | None:
    """Return the answer that a line is; None: it is unclear, and is to be asked again.

    An empty line takes the default, which never allows. Several words refuse a tool call and are the note.
    """
    text = line.strip()
    typed = text.casefold()
    keys = _keys(request)
    if not typed or typed in NO:
        return TerminalPermissionReply(request.default)
    if typed in YES:
        typed = "y"
    if typed in keys:
        return TerminalPermissionReply(keys[typed])
    first, *rest = typed.replace(",", " ").split() or [typed]
    if not _accepts_note(request) or not (rest or not typed.isascii()):
        return None
    # "yes, but not there" is neither a yes nor a no.
    return (
        None
        if first in YES or first in keys.keys() - NO
        else TerminalPermissionReply(request.default, text)
    )


def _keys(request: PermissionRequest) -> dict[str, str]:
    """Return the option of each key that can be typed; `y` is the first that allows it."""
    kinds = {one.id: one.kind for one in request.options}
    offered = [one["optionId"] for one in dialog(request)["actions"]]
    keys = {KEYS[kinds[option]]: option for option in offered}
    allowing = [one for one in offered if kinds[one].startswith("allow")]
    return {"y": allowing[0], **keys} if allowing else keys


def _accepts_note(request: PermissionRequest) -> bool:
    """Return whether words go to the model: only a tool call is its own."""
    return not isinstance(request.subject, TrustSubject | ServerSubject)


def discard_typed_input() -> None:
    """Discard the input of the terminal so far. Does nothing on Windows.

    Call it just before a question is written: earlier input is no answer to it, and input that follows the question
    is not lost, however soon it comes.
    """
    with suppress(ImportError, OSError):
        import termios  # noqa: PLC0415 - not on Windows

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def read_terminal_line() -> str:
    """Read the next line of the terminal."""
    number = sys.stdin.fileno()
    if sys.platform == "win32":
        # The thread cannot be stopped; a line that comes after the end of the question is lost with it.
        return await to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    # Not in a thread: one that waits for a person who never types would hold up the end of the process.
    await anyio.wait_readable(number)
    return os.read(number, MOST_BYTES).decode("utf-8", "replace")


@contextmanager
def _offered(
    request: PermissionRequest, offer: OfferChoices | None, write_question: WriteText
) -> Generator[None]:
    """Write a request, and show its menu while the context lasts."""
    _ = write_question(_shown(request, with_options=offer is None))
    if offer is None:
        yield
        return
    offer(*_choices(request))
    try:
        yield
    finally:
        offer((), 0)


def _choices(request: PermissionRequest) -> tuple[Sequence[AnswerChoice], int]:
    """Return the rows of the menu, and the index of the one that Enter takes at first, which allows nothing."""
    keys = {option: key for key, option in reversed(_keys(request).items())}
    titles = {one["optionId"]: shortened(one["title"]) for one in dialog(request)["actions"]}
    choices = [
        AnswerChoice(keys[option], f"[{keys[option]}] {title}") for option, title in titles.items()
    ]
    places = [index for index, option in enumerate(titles) if option == request.default]
    return choices, places[0] if places else len(choices) - 1


def _shown(request: PermissionRequest, *, with_options: bool) -> str:
    """Show the question with its exact bytes, and what to type."""
    params = dialog(request)
    choices, default = _choices(request)
    lines = [
        f"  {one.label}{' (Enter)' if index == default else ''}"
        for index, one in enumerate(choices)
        if with_options
    ]
    if not with_options:
        lines.append("  Choose with the arrow keys and Enter, or type the letter.")
    if _accepts_note(request):
        lines.append("  Other text refuses it and is sent to the model.")
    subject = request.subject
    has_difference = isinstance(subject, TrustSubject | ServerSubject)
    difference = subject.difference.splitlines() if has_difference else []
    return "\n".join(
        (
            "",
            params["message"],
            *(f"    {line}" for line in difference),
            *lines,
            "? " if with_options else "",
        )
    )


def _not_understood(request: PermissionRequest, line: str) -> str:
    keys = {option: key for key, option in reversed(_keys(request).items())}
    *others, last = reversed(keys.values())
    answers = f"{', '.join(others)} or {last}" if others else last
    note_hint = (
        ", or several words for the model, which refuse it" if _accepts_note(request) else ""
    )
    return f"{one_line(line)!r} is not an answer. Type {answers}{note_hint}.\n? "
