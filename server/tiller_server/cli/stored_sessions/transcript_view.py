"""Prints a conversation: the present branch of a session, to be read or paged."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from agent_core.assembly.library import SessionLibrary
from agent_core.kernel.json import encode
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    File,
    Image,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.storage.port import StoredSession
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    Transcript,
)
from agent_core.transcript.codec import encode_header, entry_to_json
from tiller_server.cli.terminal.run_renderer import PREVIEW_CHARS
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import (
    BOLD,
    CYAN,
    DIM,
    RED,
    call_title,
    clipped,
    excerpt,
    moment,
    one_line,
    safe,
    styled,
)

LINE_CELLS: Final = 100


async def show(library: SessionLibrary, options: argparse.Namespace, *, colour: bool) -> int:
    """Print a conversation."""
    found = await library.find(options.session)
    stored = await library.read(found.session)
    transcript = Transcript(stored.entries)
    if options.json:
        return _show_json(stored, transcript.path())
    title = transcript.title or found.preview or found.session
    _ = sys.stdout.write(styled(one_line(title), BOLD, colour=colour) + "\n")
    facts = (found.session, found.model or "no model", found.cwd, moment(found.created_ms))
    _ = sys.stdout.write(styled(one_line(" · ".join(facts)), DIM, colour=colour) + "\n")
    for block in conversation_blocks(transcript.path(), colour=colour):
        _ = sys.stdout.write(f"{block}\n")
    tell_recovery(stored)
    return 0


def tell_recovery(stored: StoredSession) -> None:
    """Report what of a file could not be read."""
    if stored.recovery.skipped_lines:
        lines = ", ".join(map(str, stored.recovery.skipped_lines))
        _ = sys.stderr.write(f"Damaged lines of the file, not shown: {lines}\n")


def call_line(call: ToolCall) -> str:
    """Return a tool call as one line."""
    return clipped(call_title(call.name, call.arguments), LINE_CELLS)


def content_text(content: Iterable[UserContent]) -> str:
    """Return what was said; a picture or a file is only named."""
    return safe("\n".join(map(_part_text, content))).strip("\n")


def _part_text(part: UserContent) -> str:
    match part:
        case Text():
            return part.text
        case Image():
            return f"(image, {part.mime})"
        case File():
            return f"(file {part.name}, {part.mime})"


def _show_json(stored: StoredSession, path: Iterable[AnyEntry]) -> int:
    speak_json()
    _ = sys.stdout.write(encode_header(stored.header).decode() + "\n")
    for entry in path:
        _ = sys.stdout.write(encode(entry_to_json(entry)).decode() + "\n")
    return 0


def conversation_blocks(
    path: Iterable[AnyEntry],
    *,
    colour: bool,
    rendered: Callable[[str], str] = str,
    prompt: Callable[[Sequence[UserContent]], str] | None = None,
) -> Iterator[str]:
    """Yield the blocks of a conversation; each begins with an empty line, except those of tool calls.

    Args:
        path: Entries of a branch, or of its end.
        colour: Use colours.
        rendered: Returns an answer of the model as it is to be shown.
        prompt: The same for a prompt of the user; None: all of it, quoted.
    """
    for entry in path:
        match entry:
            case MessageEntry(message=UserMessage(content=content)):
                text = prompt(content) if prompt else _quoted(content_text(content))
                yield "\n" + styled(text, CYAN, colour=colour)
            case MessageEntry(message=AssistantMessage() as said):
                yield from _answer(said, colour=colour, rendered=rendered)
            case MessageEntry(message=ToolResultMessage() as result):
                yield from _failure(result, colour=colour)
            case MessageEntry(message=BashMessage() as ran):
                yield f"\n$ {safe(ran.command)}\n{safe(ran.output).rstrip()}"
            case _:
                yield from _other_entry(entry, colour=colour)


def _answer(
    said: AssistantMessage, *, colour: bool, rendered: Callable[[str], str]
) -> Iterator[str]:
    text = safe(said.text).strip("\n")
    if text:
        yield f"\n{rendered(text)}"
    for call in said.tool_calls:
        yield styled(f"▸ {call_line(call)}", DIM, colour=colour)
    if said.error:
        yield styled(f"✗ {one_line(said.error)}", RED, colour=colour)


def _failure(result: ToolResultMessage, *, colour: bool) -> Iterator[str]:
    if result.is_error:
        said = content_text(part for part in result.content if not isinstance(part, Image)).strip()
        last = said.splitlines()[-1] if said else "failed"
        line = excerpt(one_line(f"{result.tool_name}: {last}"), PREVIEW_CHARS)
        yield styled(f"✗ {line}", RED, colour=colour)


def _other_entry(entry: AnyEntry, *, colour: bool) -> Iterator[str]:
    match entry:
        case CustomMessageEntry(display=True):
            name = styled(f"[{one_line(entry.custom_type)}]", DIM, colour=colour)
            yield f"\n{name} {content_text(entry.content)}"
        case CompactionEntry():
            yield _summary("summary of the earlier conversation", entry.summary, colour=colour)
        case BranchSummaryEntry() if entry.summary.strip():
            yield _summary("summary of another branch", entry.summary, colour=colour)
        case _:
            pass


def _summary(what: str, text: str, *, colour: bool) -> str:
    return "\n" + styled(f"— {what} —\n{safe(text).strip()}", DIM, colour=colour)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
