"""Requests and answers about shared pages."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from agent_core.kernel.values import Value
from tiller_server.web.tasks.models import ShortText

DAY_S: Final = 24 * 3600
MAX_DAYS: Final = 30
ApiShareState = Literal["active", "expired", "revoked"]


class ApiShareQuestion(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Session whose page is previewed."""

    session: Annotated[ShortText, Meta(description="Session id.")]


class ApiRedaction(Value, frozen=True, kw_only=True):
    """Secrets of one kind that were replaced in a page."""

    kind: Annotated[str, Meta(description="Kind, such as `api-key`; `secret`: a value of yours.")]
    count: int


class ApiSharePreview(Value, frozen=True, kw_only=True):
    """Page that a link would show."""

    session: Annotated[str, Meta(description="Session id.")]
    title: Annotated[str, Meta(description="Title of the page.")]
    size: Annotated[int, Meta(description="Bytes of the page.")]
    redacted: Annotated[
        tuple[ApiRedaction, ...], Meta(description="Secrets that were replaced, by kind.")
    ]
    confirm: Annotated[str, Meta(description="Digest of the page, which a link needs.")]


class ApiShareRequest(Value, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Link to create."""

    session: Annotated[ShortText, Meta(description="Session id.")]
    confirm: Annotated[ShortText, Meta(description="`confirm` of the preview.")]
    expires_in_s: Annotated[
        int, Meta(ge=60, le=MAX_DAYS * DAY_S, description="Seconds until it expires.")
    ] = DAY_S


class ApiShare(Value, frozen=True, kw_only=True, rename="camel"):
    """Link to a page; the link itself is in no answer but the first."""

    share: Annotated[str, Meta(description="Id of the link.")]
    session: Annotated[str, Meta(description="Session id.")]
    title: Annotated[str, Meta(description="Title of the page.")]
    state: ApiShareState
    created_at: Annotated[str, Meta(description="Time of its creation, RFC 3339.")]
    expires_at: Annotated[str, Meta(description="Time of its end, RFC 3339.")]


class ApiShareCreated(Value, frozen=True, kw_only=True, rename="camel"):
    """Link that was created; it is shown only here."""

    share: Annotated[str, Meta(description="Id of the link.")]
    url: Annotated[str, Meta(description="The link.")]
    expires_at: Annotated[str, Meta(description="Time of its end, RFC 3339.")]


class ApiShareList(Value, frozen=True, kw_only=True):
    """All links, newest first."""

    shares: tuple[ApiShare, ...]
