"""Conversion of the content blocks of a client into text and images for the session."""

import re
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from agent_core.kernel.text import for_model, one_line
from agent_core.messages import File, Image, Text, UserContent
from agent_core.tools.builtin.diagnostics import SEVERITIES
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.wire.blocks import (
    Block,
    Diagnostic,
    DiagnosticsBlock,
    DiffBlock,
    FileBlock,
    ImageBlock,
    Range,
    ResourceBlock,
    SelectionBlock,
    TextBlock,
)

UNKNOWN = "application/octet-stream"
"""Type of a file before its bytes are looked at."""
_OUR_TAG = re.compile(
    r"<(?=\s*/?\s*(?:resource|selection|diagnostics|diff|editor-context)\b)", re.IGNORECASE
)


def to_content(blocks: Sequence[Block]) -> tuple[UserContent, ...]:
    """Turn blocks into what the model reads.

    Raises:
        RpcError: A block cannot be used; the text says which and why.
    """
    return tuple(_one(index, block) for index, block in enumerate(blocks))


def _one(index: int, block: Block) -> UserContent:
    match block:
        case TextBlock(text=text):
            return Text(text=text)
        case ImageBlock(mime=mime, data=str(data)):
            return Image(mime=mime, data=data)
        case ImageBlock(mime=mime, blob=str(blob)):
            return Image(mime=mime, blob=blob)
        case FileBlock(name=name, mime=mime, data=str(data)):
            return File(name=name, mime=mime or UNKNOWN, data=data)
        case FileBlock(name=name, mime=mime, blob=str(blob)):
            return File(name=name, mime=mime or UNKNOWN, blob=blob)
        case ResourceBlock() | SelectionBlock() | DiagnosticsBlock() | DiffBlock():
            return Text(text=_marked(block))
        case _:
            kind = block.type
            message = f"content[{index}]: a block of type {kind!r} cannot be used here; send its text or data"
            raise RpcError(INVALID_PARAMS, message)


def _marked(block: ResourceBlock | SelectionBlock | DiagnosticsBlock | DiffBlock) -> str:
    """Write a piece of the editor's world as data that cannot be taken for the user's words."""
    match block:
        case ResourceBlock(uri=uri, text=str(text)):
            return fenced("resource", uri, text)
        case ResourceBlock(uri=uri):
            return (
                f"The user points at {one_line(uri)}{_lines(block.range)}; read it when it matters."
            )
        case SelectionBlock(uri=uri, text=text):
            return fenced("selection", uri, text)
        case DiagnosticsBlock(uri=uri, items=items):
            lines = "\n".join(_problem(item) for item in items)
            return fenced("diagnostics", uri, lines)
        case DiffBlock(patch=patch):
            return fenced("diff", None, patch)


def _lines(place: Range | None) -> str:
    if place is None:
        return ""
    first, end = place.start.line + 1, place.end
    # A range that ends where a line begins does not touch that line.
    last = end.line + (1 if end.character else 0)
    return f", line {first}" if last <= first else f", lines {first} to {last}"


def _problem(item: Diagnostic) -> str:
    """Format a diagnostic with its position, as the tool for problems does."""
    severity = SEVERITIES.get(item.severity or 1, "error")
    names = " ".join(str(one) for one in (item.source, item.code) if one is not None)
    of = f" [{names}]" if names else ""
    start = item.range.start
    return f"- {start.line + 1}:{start.character + 1} {severity}{of} {item.message}"


def fenced(tag: str, uri: str | None, text: str) -> str:
    """Wrap text in tags that it cannot close; invisible characters are written out."""
    name = "" if uri is None else f" uri={quoteattr(one_line(uri))}"
    inner = _OUR_TAG.sub(r"<\\", for_model(text))
    return f"<{tag}{name}>\n{inner}\n</{tag}>"
