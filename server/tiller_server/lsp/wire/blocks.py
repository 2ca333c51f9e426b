"""Content blocks of one message: text, images, and parts of the editor's state."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    Uint,
    UncheckedJson,
    VendorWord,
    WireModel,
    at_most,
    tagged_union,
)

__all__ = [
    "Block",
    "ContentBlocks",
    "Diagnostic",
    "DiagnosticsBlock",
    "DiffBlock",
    "ImageBlock",
    "Position",
    "Range",
    "ResourceBlock",
    "SelectionBlock",
    "SkillBlock",
    "TextBlock",
    "VendorBlock",
]


MAX_BLOCKS = 1000
"""Most blocks in one message; longer content belongs in a file."""


class Position(WireModel):
    """Position in a document, in the negotiated position encoding."""

    line: Uint
    """Line, from 0."""
    character: Uint
    """Character in the line, from 0, in units of the position encoding."""


class Range(WireModel):
    """Range of a document, end exclusive."""

    start: Position
    end: Position


class Diagnostic(WireModel):
    """LSP diagnostic; fields that are not listed here are passed on unchanged."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    range: Range
    message: str
    severity: Annotated[int, Field(ge=1, le=4)] | None = None
    """1 error, 2 warning, 3 information, 4 hint."""
    code: int | str | None = None
    source: str | None = None
    data: UncheckedJson = None


class TextBlock(WireModel):
    """Text."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(WireModel):
    """Image, as base64 data, by URI, or stored: exactly one of `data`, `uri` and `blob`."""

    type: Literal["image"] = "image"
    mime: str
    """Media type, such as `image/png`."""
    data: str | None = None
    """Base64."""
    uri: str | None = None
    blob: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the stored image, in hexadecimal digits."""
    size: Annotated[int, Field(ge=0)] | None = None
    """Of a stored image, in bytes; need not be sent."""

    @model_validator(mode="after")
    def _one_source(self) -> "ImageBlock":
        if [self.data, self.uri, self.blob].count(None) != 2:  # noqa: PLR2004 - all but one
            raise PydanticCustomError("shape", "have either data, uri or blob")
        return self


class FileBlock(WireModel):
    """File of text or PDF, as base64 data or stored: exactly one of `data` and `blob`."""

    type: Literal["file"] = "file"
    name: str
    """Name, for people and the model."""
    mime: str | None = None
    """Media type; that of the bytes counts."""
    data: str | None = None
    """Base64."""
    blob: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the stored file, in hexadecimal digits."""
    size: Annotated[int, Field(ge=0)] | None = None
    """Of a stored file, in bytes; need not be sent."""

    @model_validator(mode="after")
    def _one_source(self) -> "FileBlock":
        if (self.data is None) == (self.blob is None):
            raise PydanticCustomError("shape", "have either data or blob")
        return self


class ResourceBlock(WireModel):
    """File or range of a file, with or without its text."""

    type: Literal["resource"] = "resource"
    uri: str
    version: int | None = None
    """Version of the document that `text` was taken from."""
    range: Range | None = None
    text: str | None = None
    sha256: str | None = None
    """SHA-256 of the file's text, as hexadecimal digits."""


class SelectionBlock(WireModel):
    """Selection of the user in a document."""

    type: Literal["selection"] = "selection"
    uri: str
    version: int
    range: Range
    text: str


class DiagnosticsBlock(WireModel):
    """Diagnostics of a document, as the editor shows them."""

    type: Literal["diagnostics"] = "diagnostics"
    uri: str
    items: FailFastList[Diagnostic]


class DiffBlock(WireModel):
    """Change as a unified diff."""

    type: Literal["diff"] = "diff"
    patch: str


class SkillBlock(WireModel):
    """Call of a skill by name."""

    type: Literal["skill"] = "skill"
    name: str
    args: str | None = None


class VendorBlock(WireModel):
    """Block of a vendor's own type (`type` begins with `_`); kept whole."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    type: Annotated[VendorWord, Field(pattern="^_")]


_AnyBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[FileBlock, Tag("file")]
    | Annotated[ResourceBlock, Tag("resource")]
    | Annotated[SelectionBlock, Tag("selection")]
    | Annotated[DiagnosticsBlock, Tag("diagnostics")]
    | Annotated[DiffBlock, Tag("diff")]
    | Annotated[SkillBlock, Tag("skill")]
    | Annotated[VendorBlock, Tag("_")],
    tagged_union(
        "type",
        "text",
        "image",
        "file",
        "resource",
        "selection",
        "diagnostics",
        "diff",
        "skill",
        vendor=True,
    ),
]

Block = TypeAliasType("Block", _AnyBlock)


def _as_blocks(given: object) -> object:
    """Convert a bare string to a text block, and one block to a list of one."""
    match given:
        case str():
            return [{"type": "text", "text": given}]
        case Mapping() | WireModel():
            return [given]  # pyright: ignore[reportUnknownVariableType] - foreign JSON
        case Sequence():
            return [
                {"type": "text", "text": each} if isinstance(each, str) else each for each in given
            ]
        case _:
            return given


_Blocks = Annotated[FailFastList[Block], Field(min_length=1, max_length=MAX_BLOCKS)]
ContentBlocks = Annotated[
    _Blocks, BeforeValidator(_as_blocks, json_schema_input_type=_Blocks), at_most(MAX_BLOCKS)
]
"""Content of a user message. Senders write a list of blocks; a bare string is accepted as well."""
