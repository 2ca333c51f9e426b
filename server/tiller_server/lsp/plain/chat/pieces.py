"""Parts of a session that the chat file shows, and their words. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from typing import Final

from agent_core.events import (
    CommandSubject,
    PermissionRequest,
    Question,
    QuestionLine,
    ServerSubject,
    TrustSubject,
)
from agent_core.kernel.text import one_line
from agent_core.messages import AssistantMessage, Text, UserContent
from agent_core.transcript import AnyEntry, CustomEntry, MessageEntry
from tiller_server.lsp.encode.history import items
from tiller_server.lsp.jsonrpc.messages import as_array, as_object
from tiller_server.lsp.plain.chat.format import ChatPiece, escaped, plain

LINE_CHARS: Final = 160
"""How long a line of what goes on may be."""
WORD_CHARS: Final = 40
"""Longest run without a blank that is held back, in characters; not every language has blanks."""
ARGUMENTS: Final = ("command", "path", "pattern", "query", "url", "name")
"""Which argument of a call says most of it, the first that there is."""
SUMMED_UP: Final = "What was said before was summed up."
RUN: Final = "tiller.run"
PICTURE: Final = "[picture]"
OVER: Final = frozenset({"completed", "cancelled", "failed", "interrupted", "budget", "refused"})
BESIDE: Final = "<editor-context>"
"""Start of text that the editor added beside the user's words."""


class StreamedText:
    """Words that come in bits: gives as much as is sure to stay as it is."""

    def __init__(self) -> None:
        self.text = ""
        """All that came."""
        self._given = 0
        self._begins_line = True

    @property
    def has_begun(self) -> bool:
        """Whether something of it was given."""
        return self._given > 0

    def feed(self, text: str) -> str:
        """Append text; return the part that can be shown now."""
        self.text += text
        held = self.text[self._given :]
        cut = len(held.rstrip())
        if cut == len(held):
            # A word is shown whole: what the user says meanwhile may come between it and the next.
            last = max(held.rfind(" "), held.rfind("\n"))
            cut = cut if cut - last > WORD_CHARS else len(held[: last + 1].rstrip())
        begin = held.rfind("\n", 0, cut) + 1
        # What begins like a heading may become one of ours: it is shown when the line is whole.
        if held[begin:cut].lstrip().startswith("#") and (begin or self._begins_line):
            cut = len(held[:begin].rstrip())
        return self._give(held[:cut])

    def rest(self, whole: str) -> str | None:
        """Return the rest of the text at its end; None when the whole text does not begin with the part already shown.

        Args:
            whole: The final text.
        """
        if not whole.startswith(self.text[: self._given]):
            return None
        self.text = whole
        return self._give(whole[self._given :].rstrip())

    def _give(self, text: str) -> str:
        if not text:
            return ""
        self._given += len(text)
        shown = escaped(text) if self._begins_line else _escaped_behind(text)
        self._begins_line = False
        return plain(shown)


def text_of(content: Sequence[UserContent]) -> str:
    """Return what was said, on as many lines as it has."""
    parts = [part.text if isinstance(part, Text) else PICTURE for part in content]
    return plain("\n".join(one for one in parts if not one.startswith(BESIDE))).strip()


def line(text: str) -> ChatPiece:
    """Make a line of what goes on."""
    return ChatPiece(kind="line", text=f"> {short(text)}")


def short(text: str) -> str:
    """Return a text on one line that is short, with everything hidden written out."""
    one = one_line(text[: 4 * LINE_CHARS])
    return one if len(one) <= LINE_CHARS else f"{one[: LINE_CHARS - 1]}…"


def call_line(name: str, arguments: Mapping[str, object] | None, status: str) -> ChatPiece:
    """Return the line about a tool call that has ended."""
    given = arguments or {}
    main_argument = next((given[one] for one in ARGUMENTS if isinstance(given.get(one), str)), None)
    about = (
        main_argument
        if isinstance(main_argument, str)
        else json.dumps(given, ensure_ascii=False)
        if given
        else ""
    )
    how = "" if status == "ok" else f" · {'failed' if status == 'error' else status}"
    return ChatPiece(kind="line", text=f"> {short(f'{name} {about}'.strip())}{how}")


def call_pieces(
    name: str, arguments: Mapping[str, object] | None, status: str
) -> Iterator[ChatPiece]:
    """Return the pieces of a tool call that has ended: its line, and a plan in full."""
    plan = (arguments or {}).get("markdown") if name == "plan" and status == "ok" else None
    if not isinstance(plan, str):
        yield call_line(name, arguments, status)
        return
    yield call_line(name, None, status)
    yield ChatPiece(kind="block", text=escaped(plain(plan).strip()))
    yield line("Answer with tiller.plan, or write what is to be different.")


def task_line(id_: str, description: str) -> ChatPiece:
    """Return the line of a task that has begun."""
    return ChatPiece(kind="line", text=f"> task {id_}: {short(description)} · started")


def task_end(
    id_: str, description: str, state: str, *, report: str = "", has_changes: bool = False
) -> ChatPiece:
    """Return the line of a task that has ended, which extends the one of its beginning.

    Args:
        id_: Id of the task.
        description: Description of the task.
        state: How it ended.
        report: How its report begins, or why it failed; shown below the line.
        has_changes: Whether it left changes in a worktree.
    """
    begun = task_line(id_, description).text
    quoted = f"\n>   {short(report)}" if report else ""
    hint = (
        "\n>   Its changes wait in a worktree: tiller.mergeTask merges them." if has_changes else ""
    )
    return ChatPiece(kind="line", text=f"{begun} · {state}{quoted}{hint}", extends=begun)


def permission_pieces(request: PermissionRequest) -> Iterator[ChatPiece]:
    """Return what is asked, and what can be answered."""
    subject = request.subject
    if isinstance(subject, CommandSubject):
        about = f"run `{short(subject.command)}` in {subject.cwd}"
    elif isinstance(subject, TrustSubject | ServerSubject):
        about = short(request.title)
    else:
        about = f"use {short(subject.tool)}" + (f" on {subject.path}" if subject.path else "")
    why = f" ({short(request.description)})" if request.description else ""
    yield ChatPiece(kind="block", text=f"> **May it?** {about}{why}")
    if isinstance(subject, ServerSubject):
        yield line(short(f"{', '.join((*subject.changed, *subject.added))} of {subject.way}"))
    yield from (line(f"- {one.label}") for one in request.options)
    yield line("Answer in the dialog, or by a code action on these lines.")


def question_pieces(question: Question) -> Iterator[ChatPiece]:
    """Return what is asked, and what can be answered."""
    for count, one in enumerate(question.questions):
        kind = "line" if count else "block"
        yield ChatPiece(kind=kind, text=f"> **Question:** {short(one.text)}")
        yield from (line(f"- {label}") for label in _labels(one))
    yield line("Answer in the dialog, or by a code action on these lines.")


def _labels(one: QuestionLine) -> Sequence[str]:
    if one.kind == "confirm":
        return ("Yes", "No")
    about = [(option.label, option.description) for option in one.options]
    return [label if not more else f"{label}: {more}" for label, more in about]


def from_log(entries: Sequence[AnyEntry]) -> Iterator[ChatPiece]:
    """Return what was said in a session before anybody showed it here."""
    ends = {entry.id: _end_of(entry) for entry in entries if isinstance(entry, CustomEntry)}
    tasks, task_calls = _tasks(entries)
    items_by_entry: dict[str, list[Mapping[str, object]]] = {}
    for placed in items(entries):
        if (placed.entry, placed.item.get("call")) not in task_calls:
            items_by_entry.setdefault(placed.entry, []).append(placed.item)
    for entry in entries:
        for item in items_by_entry.get(entry.id, ()):
            yield from _pieces(item)
        ended = ends.get(entry.id)
        if ended is not None:
            yield line(ended)
        task = tasks.get(entry.id)
        if task is not None:
            yield task


def _end_of(entry: CustomEntry) -> str | None:
    data = as_object(entry.data) or {}
    status = data.get("status")
    if entry.custom_type != RUN or status not in OVER:
        return None
    return "done" if status == "completed" else str(status)


def _tasks(
    entries: Sequence[AnyEntry],
) -> tuple[Mapping[str, ChatPiece], AbstractSet[tuple[str, object]]]:
    """Return the lines of tasks by entry, and the calls that started tasks: the entry of the answer, and the id of the call."""
    lines: dict[str, ChatPiece] = {}
    calls: set[tuple[str, object]] = set()
    descriptions: dict[str, str] = {}
    answer = ""
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage()):
                answer = entry.id
            case CustomEntry(
                custom_type="tiller.task",
                data={
                    "op": "started",
                    "id": str(id_),
                    "order": {"description": str(what)},
                    "call": call,
                },
            ):
                descriptions[id_] = what
                calls.add((answer, call))
                lines[entry.id] = task_line(id_, what)
            case CustomEntry(
                custom_type="tiller.task", data={"op": "ended", "id": str(id_), "state": str(state)}
            ):
                lines[entry.id] = task_end(id_, descriptions.get(id_, ""), state)
            case _:
                pass
    return lines, calls


def _pieces(item: Mapping[str, object]) -> Iterator[ChatPiece]:
    match item:
        case {"kind": "message", "role": role}:
            text = _message_text(as_array(item.get("content")) or ())
            if text and role == "user":
                yield ChatPiece(kind="you", text=text)
            elif text:
                yield ChatPiece(kind="block", text=escaped(text))
        case {"kind": "tool", "name": str(name)}:
            arguments = as_object(item.get("input")) or {}
            yield from call_pieces(name, arguments, str(item.get("status", "cancelled")))
        case {"kind": "summary"}:
            yield line(SUMMED_UP)
        case _:
            return


def _message_text(content: Sequence[object]) -> str:
    parts = [as_object(one) or {} for one in content]
    said = [str(one["text"]) if "text" in one else PICTURE for one in parts]
    return plain("\n".join(one for one in said if not one.startswith(BESIDE))).strip()


def _escaped_behind(text: str) -> str:
    """Escape all lines but the first, which goes on with one that is shown already."""
    first, end, more = text.partition("\n")
    return first + end + escaped(more)
