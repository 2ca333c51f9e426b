"""`agent/blob/read`: the bytes of an attachment, by pieces that fit an answer."""

from base64 import b64encode
from typing import Final

from agent_core.kernel.threads import run_in_thread
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import BLOB_READ, BlobReadParams, BlobReadResult

PIECE_BYTES: Final = 3 << 20
"""Divisible by three, so that the base64 of all pieces together is that of the whole."""


@feature(BLOB_READ)
async def blob_read(client: ConnectedClient, params: BlobReadParams) -> BlobReadResult:
    """Read it."""
    from agent_core.assembly.storage.attachments import UserAttachments  # noqa: PLC0415 - few clients ask

    attachments = UserAttachments(client.host.paths, client.origin.env)
    with translated_errors():
        found = await (await run_in_thread(attachments.now)).read(params.blob)
    if found is None:
        message = f"agent/blob/read: no attachment {params.blob!r:.80} is stored"
        raise invalid_params(message)
    stored, data = found
    first = params.offset or 0
    end = first + PIECE_BYTES
    return BlobReadResult(
        mime=stored.mime,
        size=stored.size,
        data=b64encode(data[first:end]).decode("ascii"),
        next=end if end < stored.size else None,
    )
