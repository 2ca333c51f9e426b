"""A branch of a session as a Markdown document: pure."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

from agent_core.transcript.entries import AnyEntry, Header
from agent_core.transcript.export.images import data_uri
from agent_core.transcript.export.pieces import (
    UNTITLED,
    ExportedEntry,
    ExportPiece,
    ImagePiece,
    MarkdownPiece,
    OutputPiece,
    RemarkPiece,
    ThinkingPiece,
    ToolCallPiece,
    TypedPiece,
    labels_of,
    models_of,
    moment,
    printable,
    shown,
    title_of,
    usage_lines,
    usage_of,
)

Images = Literal["noted", "embedded"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
# What is escaped already, what begins code, and what begins a tag (a link in angle brackets is none).
_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<(?=[a-zA-Z/!?])(?!https?://|mailto:)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")


def markdown(
    header: Header,
    path: Sequence[AnyEntry],
    *,
    title: str | None = None,
    images: Images = "noted",
) -> str:
    """Return a branch as a Markdown document that ends with its usage and cost.

    Messages are Markdown themselves, with HTML escaped; outputs are in fences that they cannot close. Blocks, long for
    a large text: call it in a worker thread.

    Args:
        header: The session's header.
        path: The entries from the root to the leaf, with their bodies.
        title: Title of the document; None: the name in the path.
        images: Whether an image is only noted, or embedded in the document as a data URI.
    """
    labels = labels_of(path)
    parts = [_head(header, path, title=title)]
    speaker = ""
    for one in filter(None, map(shown, path)):
        parts.extend(_entry(one, after=speaker, label=labels.get(one.entry, ""), images=images))
        speaker = one.speaker or speaker
    spent = usage_lines(usage_of(path))
    if spent:
        rows = "\n".join(f"| {name} | {figure} |" for name, figure in spent)
        parts.append(f"## Usage of this branch\n\n| | |\n| --- | ---: |\n{rows}")
    return "\n\n".join(parts) + "\n"


def fenced(text: str, *, language: str = "") -> str:
    """Format text as a code block with a fence longer than any in the text."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.removesuffix(chr(10))}\n{ticks}"


def tamed(text: str) -> str:
    """Return Markdown that ends its own code blocks, and shows HTML instead of using it."""
    out: list[str] = []
    plain: list[str] = []
    fence = ""
    for line in text.split("\n"):
        marks = _FENCE.fullmatch(line)
        if fence:
            out.append(line)
            if marks and marks[1].startswith(fence) and not marks[2].strip():
                fence = ""
        elif marks and not (marks[1][0] == "`" and "`" in marks[2]):
            out.extend([*_without_html(plain), line])
            plain, fence = [], marks[1]
        else:
            plain.append(line)
    return "\n".join([*out, *_without_html(plain), *([fence] if fence else [])])


def _head(header: Header, path: Sequence[AnyEntry], *, title: str | None) -> str:
    name = _one_line(title or title_of(path) or UNTITLED)
    facts = [
        ("Session", _code(header.id)),
        ("Started", moment(header.at_ms)),
        ("Folder", _code(header.cwd)),
        ("Model", ", ".join(map(_code, models_of(path)))),
        ("Continues", _code(header.parent_session or "")),
    ]
    listed = "\n".join(f"- **{name}**: {value}" for name, value in facts if value)
    return f"# {name}\n\n{listed}"


def _entry(one: ExportedEntry, *, after: str, label: str, images: Images) -> list[str]:
    parts: list[str] = []
    if one.speaker and (one.speaker != after or label):
        heading = [one.speaker, one.model, moment(one.at_ms), label and f"“{label}”"]
        parts.append("## " + " · ".join(_one_line(word) for word in heading if word))
    parts.extend(_piece(piece, images=images) for piece in one.pieces)
    return parts


def _piece(piece: ExportPiece, *, images: Images) -> str:
    match piece:
        case TypedPiece() | MarkdownPiece():
            return tamed(printable(piece.text).strip("\n"))
        case ThinkingPiece():
            thought = tamed(printable(piece.text).strip("\n"))
            return f"<details>\n<summary>Thinking</summary>\n\n{thought}\n\n</details>"
        case ToolCallPiece():
            return _call(piece)
        case OutputPiece():
            title = f"**{_one_line(piece.title)}**"
            command = (
                [fenced(f"$ {printable(piece.command)}", language="sh")] if piece.command else []
            )
            output = fenced(printable(piece.text)) if piece.text.strip() else "*(no output)*"
            return "\n\n".join([title, *command, output])
        case ImagePiece():
            return _picture(piece, images=images)
        case RemarkPiece():
            return f"*{_one_line(piece.text)}*"


def _call(call: ToolCallPiece) -> str:
    parts = [f"**Tool call: {_code(call.name)}**"]
    if call.arguments:
        parts.append(fenced(printable(call.arguments), language="json"))
    for name, value in call.long:
        parts.extend([f"{_code(name)}:", fenced(printable(value))])
    return "\n\n".join(parts)


def _picture(picture: ImagePiece, *, images: Images) -> str:
    uri = data_uri(picture.mime, picture.data) if images == "embedded" else None
    return f"*(image, {_one_line(picture.mime)})*" if uri is None else f"![image]({uri})"


def _one_line(text: str) -> str:
    """Return a text as one line in which nothing is Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(printable(text).split()))


def _code(text: str) -> str:
    line = " ".join(printable(text).split())
    if not line:
        return ""
    longest = max(map(len, _TICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _without_html(lines: Sequence[str]) -> list[str]:
    """Escape tags outside of code spans."""
    text = "\n".join(lines)
    if "<" not in text:
        return [text] if lines else []
    out: list[str] = []
    start = 0
    for end in (*(found.end() for found in _PARAGRAPH_END.finditer(text)), len(text)):
        out.append(_escaped(text[start:end]))
        start = end
    return ["".join(out)]


def _escaped(paragraph: str) -> str:
    closers: dict[int, list[int]] = {}
    for run in _TICKS.finditer(paragraph):
        closers.setdefault(len(run[0]), []).append(run.start())
    out: list[str] = []
    done = place = 0
    while found := _TOKEN.search(paragraph, place):
        place = found.end()
        if found[0] == "<":
            out.extend([paragraph[done : found.start()], "\\<"])
            done = place
        elif found[0][0] == "`":
            same = closers.get(len(found[0]), [])
            after = bisect_left(same, place)
            # Without a run of the same length behind it, a run of backticks begins no code.
            place = same[after] + len(found[0]) if after < len(same) else place
    return "".join([*out, paragraph[done:]])
