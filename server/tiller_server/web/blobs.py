"""Attachments over HTTP: bytes are stored under their SHA-256, and read from there."""

from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agent_core.assembly.storage.attachments import UserAttachments
from agent_core.kernel.errors import (
    AttachmentRefused,
    AttachmentTooLarge,
    AttachmentUntyped,
    StorageUnavailable,
)
from agent_core.kernel.json import encode
from agent_core.kernel.threads import run_in_thread
from agent_core.storage.attachments import IMAGE_TYPES, TEXT
from tiller_server.web.answers import check_operator
from tiller_server.web.guard import NOTHING, GuardedRoute, refused
from tiller_server.web.methods import Role
from tiller_server.web.options import WebLimits

PATH: Final = "/v1/blobs/{blob}"
LINK: Final = "/v1/blobs/{blob}/link"
AGAIN_S: Final = 5
BYTES: Final = "application/octet-stream"
STATUS_OF_REFUSAL: Final = ((AttachmentTooLarge, 413), (AttachmentUntyped, 415))
"""Any other refusal is 400."""


class BlobRoutes:
    """The routes of attachments.

    The process stores them itself, as the daemon does: an attachment is whole or not there, named by its content,
    so nothing has to be agreed on, and 32 MiB do not pass through a socket of JSON messages.
    """

    def __init__(self, attachments: UserAttachments, *, role: Role, limits: WebLimits) -> None:
        """Prepare them.

        Args:
            attachments: Those of the user.
            role: Rights of browsers.
            limits: The largest body and its time.
        """
        self._attachments = attachments
        self._role: Role = role
        self._limits = limits

    def routes(self) -> tuple[GuardedRoute, ...]:
        """Return the routes."""
        limits = self._limits
        return (
            GuardedRoute(
                PATH,
                self._put,
                method="PUT",
                max_bytes=limits.max_blob_bytes,
                content_type=BYTES,
                body_s=limits.blob_s,
            ),
            GuardedRoute(PATH, self._get, method="GET"),
            GuardedRoute(LINK, self._link, method="GET"),
        )

    async def _put(self, request: Request) -> Response:
        check_operator(self._role, "an attachment")
        try:
            attachments = await run_in_thread(self._attachments.now)
            stored, is_new = await attachments.receive(_blob(request), request.stream())
        except AttachmentRefused as error:
            status = next(
                (code for kind, code in STATUS_OF_REFUSAL if isinstance(error, kind)), 400
            )
            return refused(status, str(error))
        except StorageUnavailable as error:
            return refused(507, str(error))
        except ClientDisconnect:
            return refused(400, "the body ended early")
        body = encode({"blob": stored.blob, "mime": stored.mime, "size": stored.size})
        return Response(body, status_code=201 if is_new else 200, media_type="application/json")

    async def _get(self, request: Request) -> Response:
        try:
            attachments = await run_in_thread(self._attachments.now)
            found = await attachments.read(_blob(request))
        except StorageUnavailable as error:
            return refused(503, str(error), wait_s=AGAIN_S)
        if found is None:
            return refused(404, "no attachment of that SHA-256 is stored")
        stored, data = found
        is_shown = stored.mime in IMAGE_TYPES or stored.mime == TEXT
        headers = {
            "content-disposition": "inline" if is_shown else "attachment",
            "content-security-policy": f"{NOTHING}; sandbox",
        }
        return Response(data, media_type=stored.mime, headers=headers)

    async def _link(self, request: Request) -> Response:
        try:
            found = await run_in_thread(self._attachments.link, _blob(request))
        except StorageUnavailable as error:
            return refused(503, str(error), wait_s=AGAIN_S)
        if found is None:
            why = "there is no address of it: attachments.linkS is not set, or it is not in the bucket"
            return refused(404, why)
        url, lifetime_s = found
        body = encode({"url": url, "expiresInS": lifetime_s})
        return Response(body, media_type="application/json")


def _blob(request: Request) -> str:
    return str(request.path_params["blob"])
