"""The shared pages and their links, in files of the user. Only hashes of the links are stored."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from agent_core.kernel import Clock, uuid7
from agent_core.kernel.private_file import locked, make_private_folder, replace_text
from agent_core.kernel.values import Value, threadsafe
from tiller_server.web.shares.models import DAY_S, MAX_DAYS, ApiShareState
from tiller_server.web.shares.shared_page import SharedPage

TOKEN_BYTES: Final = 32
REMEMBERED_MS: Final = MAX_DAYS * DAY_S * 1000
"""Time after its end for which a link is still answered as expired or revoked."""


class ShareRecord(Value, frozen=True, kw_only=True):
    """A link."""

    id: str
    token: str
    """Hash of what the link ends in."""
    session: str
    title: str
    style: str
    """Source of the style of the page, for its policy."""
    at_ms: int
    expires_ms: int
    revoked_ms: int | None = None

    def state(self, now_ms: int) -> ApiShareState:
        """Return its state at a time."""
        if self.revoked_ms is not None:
            return "revoked"
        return "active" if now_ms < self.expires_ms else "expired"


class ShareStore:
    """Links and their pages. All methods block."""

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        """Use a folder, which need not exist."""
        self._folder = folder
        self._list = folder / "shares.json"
        self._clock = clock

    def add(self, page: SharedPage, *, session: str, expires_in_s: int) -> tuple[ShareRecord, str]:
        """Store a page; return its link and the token that the link ends in.

        Raises:
            OSError: It cannot be stored.
        """
        now_ms = self._clock.now_ms()
        token = secrets.token_urlsafe(TOKEN_BYTES)
        record = ShareRecord(
            id=f"share-{uuid7(now_ms)}",
            token=_digest(token),
            session=session,
            title=page.title,
            style=page.style,
            at_ms=now_ms,
            expires_ms=now_ms + expires_in_s * 1000,
        )
        make_private_folder(self._folder)
        replace_text(self._page(record), page.content)
        self._change(lambda records: [*records, record])
        return record, token

    def newest_first(self) -> Sequence[ShareRecord]:
        """Return all links; the pages of those that have expired are removed.

        Raises:
            OSError: They cannot be read.
        """
        return [*reversed(self._change(lambda records: records))]

    def revoke(self, id_: str) -> ShareRecord | None:
        """End a link and remove its page; None: there is none of this id.

        Raises:
            OSError: The end cannot be stored.
        """
        now_ms = self._clock.now_ms()
        changed = self._change(
            lambda records: [
                replace(one, revoked_ms=now_ms)
                if one.id == id_ and one.state(now_ms) == "active"
                else one
                for one in records
            ]
        )
        return next((one for one in changed if one.id == id_), None)

    def find(self, token: str) -> ShareRecord | None:
        """Return the link that ends in a token.

        Raises:
            OSError: The links cannot be read.
        """
        digest = _digest(token)
        return next((one for one in self._read() if compare_digest(one.token, digest)), None)

    def content(self, record: ShareRecord) -> bytes | None:
        """Return the page of a link; None: it has ended."""
        if record.state(self._clock.now_ms()) != "active":
            return None
        try:
            return self._page(record).read_bytes()
        except FileNotFoundError:
            return None

    def _change(
        self, change: Callable[[Sequence[ShareRecord]], Sequence[ShareRecord]]
    ) -> Sequence[ShareRecord]:
        if not self._folder.is_dir():
            return ()
        with locked(self._list):
            before = self._read()
            now_ms = self._clock.now_ms()
            after = [one for one in change(before) if now_ms < one.expires_ms + REMEMBERED_MS]
            for one in {*before, *after}:
                if one not in after or one.state(now_ms) != "active":
                    with suppress(FileNotFoundError):
                        self._page(one).unlink()
            if after != before:
                replace_text(self._list, msgspec.json.encode(after).decode())
        return after

    def _read(self) -> list[ShareRecord]:
        try:
            return msgspec.json.decode(self._list.read_bytes(), type=threadsafe(list[ShareRecord]))
        except FileNotFoundError:
            return []
        except msgspec.DecodeError as error:
            raise OSError(0, f"{self._list} cannot be read: {error}") from error

    def _page(self, record: ShareRecord) -> Path:
        return self._folder / f"{record.id}.html"


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()
