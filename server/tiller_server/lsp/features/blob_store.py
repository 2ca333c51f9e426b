"""`agent/blob/store`: a file of this machine or a web page as an attachment, so that its bytes are in no message."""

import os
import re
import stat
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import AttachmentRefused
from agent_core.kernel.text import format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.storage.attachments import AttachmentLimits
from agent_core.storage.port import Attachment
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import BLOB_STORE, BlobStoreParams, BlobStoreResult

_WEB_PAGE: Final = re.compile(r"https?:", re.IGNORECASE)


@feature(BLOB_STORE)
async def blob_store(client: ConnectedClient, params: BlobStoreParams) -> BlobStoreResult:
    """Store it."""
    if _WEB_PAGE.match(params.uri):
        return await _stored_page(client, params.uri)
    path = path_of(params.uri)
    if path is None or not path.is_absolute():
        message = f"agent/blob/store: uri is {params.uri!r:.200}; name a file of this machine by a file: URI, or a web page by its URL"
        raise invalid_params(message)
    with translated_errors():
        stored = await run_in_thread(_stored, client, path, params.size)
    return BlobStoreResult(name=path.name, blob=stored.blob, mime=stored.mime, size=stored.size)


async def _stored_page(client: ConnectedClient, url: str) -> BlobStoreResult:
    from agent_core.assembly.storage.web_pages import page_options  # noqa: PLC0415 - few clients ask
    from agent_core.tools.web.attached_page import attached_page  # noqa: PLC0415 - as above

    with translated_errors():
        options = await run_in_thread(page_options, client.host.paths)
        page = await attached_page(url, options)
        stored = await run_in_thread(_put, client, page.text.encode())
    return BlobStoreResult(name=page.name, blob=stored.blob, mime=stored.mime, size=stored.size)


def _stored(client: ConnectedClient, path: Path, size: int | None) -> Attachment:
    from agent_core.session.attachments import check_file  # noqa: PLC0415 - few clients ask

    data = _read(path, size)
    check_file(path.name, data)
    return _put(client, data)


def _put(client: ConnectedClient, data: bytes) -> Attachment:
    from agent_core.assembly.storage.attachments import UserAttachments  # noqa: PLC0415 - few clients ask

    return UserAttachments(client.host.paths, client.origin.env).now().put_now(data)


def _read(path: Path, size: int | None) -> bytes:
    """Return the content of a regular file.

    Raises:
        AttachmentRefused: It is none, cannot be read, is too large, or is not the file that the client sees.
    """
    most = AttachmentLimits().file_bytes
    try:
        # Not to wait for a writer when it is a pipe.
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        )
        with os.fdopen(handle, "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(handle).st_mode)
            data = file.read(most + 1) if is_regular else b""
    except OSError as error:
        message = f"{str(path)!r} cannot be attached: {error.strerror or error}; name a file that this machine can read."
        raise AttachmentRefused(message) from error
    if not is_regular:
        message = f"{str(path)!r} is no regular file; name a file."
        raise AttachmentRefused(message)
    if len(data) > most:
        message = f"{path.name} is larger than {format_size(most)}, the limit for an attached file; make it smaller."
        raise AttachmentRefused(message)
    if size is not None and size != len(data):
        message = (
            f"{str(path)!r} has {len(data)} bytes on the machine of Tiller and {size} on that of the editor; "
            "save it, or send its bytes instead."
        )
        raise AttachmentRefused(message)
    return data
