"""Asks the person at the terminal whether something may be done; only a clear yes allows it."""

import os
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import anyio
from anyio import to_thread

from agent_core.channels import PermissionChoice
from agent_core.events import (
    Answer,
    CommandSubject,
    PermissionRequest,
    Question,
    QuestionLine,
    ServerSubject,
    TargetSubject,
    TrustSubject,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, is_object
from agent_core.kernel.text import shown
from agent_core.kernel.values import Value
from tiller_server.cli.terminal.text import VERBATIM, one_line
from tiller_server.lsp.dialogs.permission_dialog import dialog, exactly, shortened

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
UNANSWERED: Final[Mapping[str, str]] = {
    "cancelled": "cancelled",
    "timeout": "no answer in time",
    "unshown": "not shown",
}
"""Note for an answer that is nobody's."""
YES: Final = frozenset({"y", "yes"})
"""The first way to allow it."""
NO: Final = frozenset({"n", "no"})
MOST_BYTES: Final = 4_096
"""A terminal gives no longer line."""
MENU_HINT: Final = "Choose with the arrow keys and Enter"
TAB: Final = 4
MOST_LINES: Final = 40
"""Lines of an edit in a question; of the others their number is shown."""


class AnswerChoice(Value, frozen=True):
    """A row of the menu under a question."""

    line: str
    """The line that stands for it."""
    label: str


OfferChoices = Callable[[Sequence[AnswerChoice], int], object]
"""Shows the choices of the line that is read next, with the index of the marked one; none takes them away."""
ReadLine = Callable[[], Awaitable[str]]
WriteText = Callable[[str], object]


class TerminalChannel:
    """The terminal as a channel: its user answers one request after another."""

    def __init__(
        self,
        *,
        read_line: ReadLine,
        write_question: WriteText,
        write_note: WriteText,
        offer: OfferChoices | None = None,
    ) -> None:
        """Prepare it.

        Args:
            read_line: Reads the answer.
            write_question: Writes a question or a complaint; a line is read next.
            write_note: Writes which other client answered first.
            offer: Shows the options of a request as a menu; None: they are written with it.
        """
        self._read_line = read_line
        self._write_question = write_question
        self._write_note = write_note
        self._offer = offer
        self._turn = anyio.Lock()

    @property
    def name(self) -> str:
        """Name under which its answers are recorded."""
        return BY

    async def ask_permission(self, request: PermissionRequest) -> PermissionChoice:
        """Ask until the line is an answer."""
        async with self._turn:
            with _offered(request, self._offer, self._write_question):
                while (reply := read_reply(request, line := await self._read_line())) is None:
                    _ = self._write_question(_not_understood(request, line))
                return reply

    async def ask_question(self, question: Question) -> Mapping[str, Answer] | None:
        """Ask the lines of the form, one after another."""
        async with self._turn:
            return await _filled(
                question,
                read_line=self._read_line,
                write=self._write_question,
                offer=self._offer,
            )

    def show_answered(self, by: str) -> None:
        """Write who answered, or that nobody did."""
        _ = self._write_note(f"({UNANSWERED.get(by, f'answered by {by}')})\n")


async def _filled(
    question: Question, *, read_line: ReadLine, write: WriteText, offer: OfferChoices | None
) -> dict[str, Answer] | None:
    """Ask the lines of a form, one after the other; None: it is declined."""
    answers: dict[str, Answer] = {}
    for line in question.questions:
        rows = _line_choices(line)
        write(_line_shown(line, with_menu=offer is not None and bool(rows)))
        with _menu(offer, rows):
            while typed := (await read_line()).strip():
                answer = read_answer(line, typed)
                if answer is not None:
                    answers[line.id] = answer
                    break
                write(f"{one_line(typed)!r} is not an answer. {_wanted(line)}.\n? ")
        if not typed and line.default is None:
            return None
    return answers


@contextmanager
def _menu(offer: OfferChoices | None, rows: Sequence[AnswerChoice]) -> Generator[None]:
    """Show the answers to a question while the context lasts; the last is marked at first, and is what Enter means."""
    if offer is None or not rows:
        yield
        return
    offer(rows, len(rows) - 1)
    try:
        yield
    finally:
        offer((), 0)


def _line_choices(line: QuestionLine) -> Sequence[AnswerChoice]:
    """Return the rows of a menu for a line of a form; none for one that takes text."""
    if line.kind == "text":
        return ()
    options = [(str(number), shown(one.label)) for number, one in enumerate(line.options, 1)]
    named = [("y", "Yes"), ("n", "No")] if line.kind == "confirm" else options
    last = "Decline" if line.default is None else "What counts otherwise"
    return [
        *(AnswerChoice(key, f"[{key}] {label}") for key, label in named),
        AnswerChoice("", last),
    ]


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


def _line_shown(line: QuestionLine, *, with_menu: bool) -> str:
    options = [
        f"  [{number}] {shown(one.label)}{f': {shown(one.description)}' if one.description else ''}"
        for number, one in enumerate(line.options, 1)
        # The menu below has the labels, and no room for more.
        if one.description or not with_menu
    ]
    wanted = f"{MENU_HINT}, or type" if with_menu else ""
    hint = _wanted(line).replace("Type", wanted, 1) if with_menu else _wanted(line)
    return "\n".join(("", shown(line.text), *options, f"  {hint}", "" if with_menu else "? "))


def _wanted(line: QuestionLine) -> str:
    what = {"confirm": "Type y or n", "choice": "Type a number", "text": "Type the answer"}
    enter = "declines" if line.default is None else "takes what counts otherwise"
    return f"{what[line.kind]}; Enter {enter}"


def read_reply(request: PermissionRequest, line: str) -> PermissionChoice | None:
    """Return the answer that a line is; None: it is unclear, and is to be asked again.

    An empty line takes the default, which never allows. Several words refuse a tool call and are the note.
    """
    text = line.strip()
    typed = text.casefold()
    keys = _keys(request)
    if not typed or typed in NO:
        return PermissionChoice(option=request.default)
    if typed in YES:
        typed = "y"
    if typed in keys:
        return PermissionChoice(option=keys[typed])
    first, *rest = typed.replace(",", " ").split() or [typed]
    if not _accepts_note(request) or not (rest or not typed.isascii()):
        return None
    # "yes, but not there" is neither a yes nor a no.
    return (
        None
        if first in YES or first in keys.keys() - NO
        else PermissionChoice(option=request.default, note=text)
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
        lines.append(f"  {MENU_HINT}, or type the letter and Enter.")
    if _accepts_note(request):
        lines.append("  Other text refuses it and is sent to the model.")
    return "\n".join(
        (
            "",
            *_message(request, params["message"]),
            *map(_indented, _content(request)),
            *lines,
            "? " if with_options else "",
        )
    )


def _message(request: PermissionRequest, message: str) -> Sequence[str]:
    """Return the lines of a question; the command or path stands indented below the headline."""
    headline, *target, why = message.splitlines()
    subject = request.subject
    if isinstance(subject, CommandSubject) and target == [exactly(subject.command)]:
        lines = map(_indented, subject.command.rstrip("\n").split("\n"))
    else:
        lines = (f"{VERBATIM}{line}" for line in target)
    return (headline, *lines, why)


def _indented(line: str) -> str:
    return f"{VERBATIM}{exactly(line.expandtabs(TAB))}"


def _content(request: PermissionRequest) -> Sequence[str]:
    """Return what would be changed: the difference of settings, or the lines of an edit."""
    match request.subject:
        case TrustSubject(difference=difference) | ServerSubject(difference=difference):
            return difference.splitlines()
        case TargetSubject(tool="edit" | "write", input=given) if given is not None:
            lines = list(_edited(given))
            more = len(lines) - MOST_LINES
            return [*lines[:MOST_LINES], f"… {more} more lines"] if more > 0 else lines
        case _:
            return ()


def _edited(given: JsonObject) -> Iterator[str]:
    """Yield the lines that the arguments of `edit` or `write` take away and bring."""
    edits = given.get("edits")
    changes = edits if isinstance(edits, Sequence) and not isinstance(edits, str) else [given]
    for change in changes:
        for sign, name in (("-", "oldText"), ("+", "newText"), ("+", "content")):
            text = as_object(change).get(name) if is_object(change) else None
            if isinstance(text, str):
                # Only line feeds: another character that ends lines must be seen.
                yield from (f"{sign} {line}" for line in text.removesuffix("\n").split("\n"))


def _not_understood(request: PermissionRequest, line: str) -> str:
    keys = {option: key for key, option in reversed(_keys(request).items())}
    *others, last = reversed(keys.values())
    answers = f"{', '.join(others)} or {last}" if others else last
    note_hint = (
        ", or several words for the model, which refuse it" if _accepts_note(request) else ""
    )
    return f"{one_line(line)!r} is not an answer. Type {answers}{note_hint}.\n? "
