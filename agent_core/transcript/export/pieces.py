"""Displayed content of a session's entries, independent of the export format: pure."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from json import dumps

from agent_core.kernel import EntryId, JsonObject, json
from agent_core.kernel.text import shown as written_out
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    File,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    StoredMessage,
    ThinkingChange,
    UsageEntry,
)

USER = "User"
ASSISTANT = "Assistant"
SUMMARY = "Summary"
UNTITLED = "Session without a title"


class TypedPiece(Value, frozen=True, kw_only=True):
    """Words as somebody typed them."""

    text: str


class MarkdownPiece(Value, frozen=True, kw_only=True):
    """Words of a model, in Markdown."""

    text: str


class ThinkingPiece(Value, frozen=True, kw_only=True):
    """Thinking of a model."""

    text: str


class ToolCallPiece(Value, frozen=True, kw_only=True):
    """A tool call."""

    name: str
    arguments: str
    """As indented JSON, without the long ones; empty when there are no others."""
    long: tuple[tuple[str, str], ...] = ()
    """Arguments of several lines, each with its name."""


class OutputPiece(Value, frozen=True, kw_only=True):
    """Output of a tool or a command."""

    title: str
    text: str
    command: str = ""
    """Command that the user ran; empty for a tool."""
    failed: bool = False


class ImagePiece(Value, frozen=True, kw_only=True):
    """An image."""

    mime: str
    data: str
    """Base64, as it was stored: not validated."""


class RemarkPiece(Value, frozen=True, kw_only=True):
    """One sentence about what happened."""

    text: str


ExportPiece = (
    TypedPiece
    | MarkdownPiece
    | ThinkingPiece
    | ToolCallPiece
    | OutputPiece
    | ImagePiece
    | RemarkPiece
)


class ExportedEntry(Value, frozen=True, kw_only=True):
    """One entry, as people see it."""

    entry: EntryId
    speaker: str
    """Name of the speaker; empty for a mere remark."""
    model: str = ""
    at_ms: int
    pieces: tuple[ExportPiece, ...]


def shown(entry: AnyEntry) -> ExportedEntry | None:
    """Return what people see of an entry; None when it is nothing.

    Raises:
        TypeError: Its body is not at hand: an export that leaves it out would look complete.
    """
    match entry:
        case ColdEntry():
            message = f"the body of the entry {entry.id!r} is in its file: load it first"
            raise TypeError(message)
        case MessageEntry(message=message):
            model = message.model if isinstance(message, AssistantMessage) else ""
            speaker, pieces = _of_message(message)
        case CustomMessageEntry():
            model, speaker = "", entry.custom_type
            pieces = list(_typed(entry.content)) if entry.display else []
        case CompactionEntry() | BranchSummaryEntry():
            model, speaker = "", SUMMARY
            pieces = [RemarkPiece(text=_about_summary(entry)), MarkdownPiece(text=entry.summary)]
        case _:
            model, speaker, pieces = "", "", list(_remarks(entry))
    if not pieces:
        return None
    return ExportedEntry(
        entry=entry.id, speaker=speaker, model=model, at_ms=entry.at_ms, pieces=tuple(pieces)
    )


def labels_of(entries: Iterable[AnyEntry]) -> Mapping[EntryId, str]:
    """Return the labels in force, by the entry that they name; the last one in the file counts."""
    found: dict[EntryId, str] = {}
    for entry in entries:
        if isinstance(entry, LabelEntry):
            found.pop(entry.target, None)
            if entry.label:
                found[entry.target] = entry.label
    return found


def title_of(entries: Iterable[AnyEntry]) -> str:
    """Return the name that was set last; empty when there is none."""
    names = [entry.name for entry in entries if isinstance(entry, SessionNameEntry)]
    return " ".join(names[-1].split()) if names else ""


def usage_of(entries: Iterable[AnyEntry]) -> Usage:
    """Add up what answers, summaries and other calls of models used."""
    total = Usage()
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage(usage=usage)) | UsageEntry(usage=usage):
                total = total.plus(usage)
            case CompactionEntry(usage=usage) | BranchSummaryEntry(usage=usage) if usage:
                total = total.plus(usage)
            case _:
                pass
    return total


def usage_lines(usage: Usage) -> tuple[tuple[str, str], ...]:
    """Return usage as rows of a name and a figure; none when nothing was used."""
    if usage.total == 0 and usage.cost is None:
        return ()
    counts = (
        ("Input tokens", usage.input),
        ("Output tokens", usage.output),
        ("Read from the cache", usage.cache_read),
        ("Written to the cache", usage.cache_write),
    )
    cost = "unknown" if usage.cost is None else f"${usage.cost.total:.4f}"
    return (*((name, f"{count:,}") for name, count in counts if count), ("Cost", cost))


def models_of(entries: Iterable[AnyEntry]) -> tuple[str, ...]:
    """Return the models that answered, as `provider/id`, in the order of their first answer."""
    found: dict[str, None] = {}
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage(provider=provider, model=model)) if model:
                found[f"{provider}/{model}" if provider else model] = None
            case _:
                pass
    return tuple(found)


def moment(at_ms: int) -> str:
    """Write a time for people; empty when it is not known."""
    try:
        return (
            f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if at_ms else ""
        )
    except (ValueError, OverflowError, OSError):
        return ""


def printable(text: str) -> str:
    """Replace what no document may hold: lone surrogates by U+FFFD, control characters by their pictures, what turns or hides text by `<U+202E>`."""
    return written_out(json.scrub(text).replace("\r\n", "\n").translate(_PICTURES))


_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}


def _of_message(message: StoredMessage) -> tuple[str, list[ExportPiece]]:
    match message:
        case UserMessage():
            return USER, list(_typed(message.content))
        case AssistantMessage():
            return ASSISTANT, _of_answer(message)
        case ToolResultMessage():
            how = "Failed: " if message.is_error else "Result of "
            texts = [part.text for part in message.content if isinstance(part, Text)]
            output = OutputPiece(
                title=f"{how}{message.tool_name}", text="\n".join(texts), failed=message.is_error
            )
            pictures = _pictures(message.content)
            return ASSISTANT, [output, *pictures] if texts or not pictures else list(pictures)
        case BashMessage():
            return USER, [
                OutputPiece(
                    title=_how_it_ended(message), text=message.output, command=message.command
                )
            ]


def _of_answer(message: AssistantMessage) -> list[ExportPiece]:
    pieces: list[ExportPiece] = []
    for part in message.content:
        match part:
            case Text() if part.text.strip():
                pieces.append(MarkdownPiece(text=part.text))
            case Thinking():
                hidden = "(The provider does not show this thought.)"
                text = hidden if part.redacted else part.text
                if text.strip():
                    pieces.append(ThinkingPiece(text=text))
            case ToolCall():
                pieces.append(_called(part))
            case _:
                pass
    match message.stop_reason:
        case "error":
            pieces.append(
                RemarkPiece(text=f"The answer failed: {message.error or 'no reason given'}")
            )
        case "aborted":
            pieces.append(RemarkPiece(text="The answer was aborted."))
        case "length":
            pieces.append(RemarkPiece(text="The answer was cut off by the limit on its length."))
        case _:
            pass
    return pieces


def _called(call: ToolCall) -> ToolCallPiece:
    if call.arguments_error is not None:
        return ToolCallPiece(
            name=call.name, arguments="", long=(("arguments", call.arguments_error),)
        )
    long = {
        name: value
        for name, value in call.arguments.items()
        if isinstance(value, str) and "\n" in value
    }
    rest = {name: value for name, value in call.arguments.items() if name not in long}
    return ToolCallPiece(name=call.name, arguments=_indented(rest), long=tuple(long.items()))


def _indented(value: JsonObject) -> str:
    if not value:
        return ""
    try:
        return dumps(json.decode(json.encode(value)), ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def _typed(content: tuple[UserContent, ...]) -> Iterable[ExportPiece]:
    for part in content:
        match part:
            case Text() if part.text.strip():
                yield TypedPiece(text=part.text)
            case Image():
                yield ImagePiece(mime=part.mime, data=part.data)
            case File():
                yield TypedPiece(text=f"(file {part.name}, {part.mime})")
            case _:
                pass


def _pictures(content: tuple[UserContent, ...]) -> list[ImagePiece]:
    return [ImagePiece(mime=one.mime, data=one.data) for one in content if isinstance(one, Image)]


def _how_it_ended(message: BashMessage) -> str:
    if message.cancelled:
        ended = "cancelled"
    elif message.exit_code is None:
        ended = "no exit code"
    else:
        ended = f"exit code {message.exit_code}"
    cut = ", output cut" if message.truncated else ""
    unheard = ", not told to the model" if message.exclude_from_context else ""
    return f"Command ({ended}{cut}{unheard})"


def _about_summary(entry: CompactionEntry | BranchSummaryEntry) -> str:
    if isinstance(entry, BranchSummaryEntry):
        return "From here on the model knows a branch that was left by this summary."
    return (
        f"From here on the model knows what came before by this summary ({entry.tokens_before:,} "
        "tokens were summarised, but for what was kept)."
    )


def _remarks(entry: AnyEntry) -> Iterable[ExportPiece]:
    match entry:
        case ModelChange():
            yield RemarkPiece(text=f"Model: {entry.provider}/{entry.model}")
        case ThinkingChange():
            yield RemarkPiece(text=f"Thinking level: {entry.level}")
        case ContextEditEntry():
            how = "left out of" if entry.replacement is None else "changed in"
            yield RemarkPiece(
                text=f"An earlier message is {how} what the model is shown from here on."
            )
        case _:
            return
