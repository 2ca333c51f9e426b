"""The routes of shared pages."""

from collections.abc import Sequence
from typing import Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from agent_core.kernel import Clock, rfc3339
from agent_core.kernel.json import as_object
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.web.answers import answering_refusals, body_of, check_operator, json_answer
from tiller_server.web.guard import GuardedRoute, origin_of, refused
from tiller_server.web.methods import Role
from tiller_server.web.options import WebLimits
from tiller_server.web.shares.models import (
    ApiShare,
    ApiShareCreated,
    ApiShareList,
    ApiSharePreview,
    ApiShareQuestion,
    ApiShareRequest,
)
from tiller_server.web.shares.share_store import ShareRecord, ShareStore
from tiller_server.web.shares.shared_page import SharedPage, policy
from tiller_server.web.tasks.models import Contract, Nothing

ENDED: Final = "This link has expired or was revoked; ask the person who sent it for another one.\n"
NEEDS: Final = "a link"
UNKNOWN: Final = "There is no such link.\n"


class ShareRoutes:
    """Routes of a person who shares a session, and of those who have the link."""

    def __init__(
        self, link: DaemonLink, store: ShareStore, *, role: Role, limits: WebLimits, clock: Clock
    ) -> None:
        """Prepare them.

        Args:
            link: The daemon.
            store: Links and their pages.
            role: Rights of the server; links need the operator.
            limits: Limits of the server.
            clock: Time.
        """
        self._link = link
        self._store = store
        self._role: Role = role
        self._limits = limits
        self._clock = clock

    def routes(self) -> Sequence[GuardedRoute]:
        """Return all of them."""
        most = self._limits.max_login_bytes
        return (
            GuardedRoute("/api/shares", self._list, method="GET", contract=LIST),
            GuardedRoute(
                "/api/shares", self._create, method="POST", max_bytes=most, contract=CREATE
            ),
            GuardedRoute(
                "/api/shares/preview",
                self._preview,
                method="POST",
                max_bytes=most,
                contract=PREVIEW,
            ),
            GuardedRoute(
                "/api/shares/{id}/revoke",
                self._revoke,
                method="POST",
                max_bytes=most,
                contract=REVOKE,
            ),
            GuardedRoute("/s/{token}", self._show, method="GET", is_public=True, is_linked=True),
        )

    async def _preview(self, request: Request) -> Response:
        asked = await body_of(request, ApiShareQuestion)
        page = await self._page(asked.session)
        return json_answer(await to_thread.run_sync(page.preview, asked.session))

    async def _create(self, request: Request) -> Response:
        asked = await body_of(request, ApiShareRequest)
        page = await self._page(asked.session)
        if page.digest != asked.confirm:
            return refused(
                409, "confirm is not of the page as it is now; look at a new preview first"
            )
        record, token = await to_thread.run_sync(
            lambda: self._store.add(page, session=asked.session, expires_in_s=asked.expires_in_s)
        )
        created = ApiShareCreated(
            share=record.id,
            url=f"{origin_of(request)}/s/{token}",
            expires_at=rfc3339(record.expires_ms),
        )
        return json_answer(created, status=201)

    async def _list(self, _request: Request) -> Response:
        records = await to_thread.run_sync(self._store.newest_first)
        return json_answer(ApiShareList(shares=tuple(self._shown(one) for one in records)))

    async def _revoke(self, request: Request) -> Response:
        _ = await body_of(request, Nothing)
        check_operator(self._role, NEEDS)
        record = await to_thread.run_sync(self._store.revoke, str(request.path_params["id"]))
        if record is None:
            return refused(404, "there is no link of this id")
        return json_answer(self._shown(record))

    async def _show(self, request: Request) -> Response:
        record = await to_thread.run_sync(self._store.find, str(request.path_params["token"]))
        if record is None:
            return PlainTextResponse(UNKNOWN, status_code=404)
        content = await to_thread.run_sync(self._store.content, record)
        if content is None:
            return PlainTextResponse(ENDED, status_code=410)
        headers = {
            "content-security-policy": policy(record.style),
            "x-robots-tag": "noindex, nofollow",
        }
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    async def _page(self, session: str) -> SharedPage:
        check_operator(self._role, NEEDS)
        params = {"session": session, "format": "html"}
        with answering_refusals():
            exported = as_object(await self._link.request("agent/session/export", params))
        return await to_thread.run_sync(SharedPage.of, str(exported.get("content")))

    def _shown(self, record: ShareRecord) -> ApiShare:
        return ApiShare(
            share=record.id,
            session=record.session,
            title=record.title,
            state=record.state(self._clock.now_ms()),
            created_at=rfc3339(record.at_ms),
            expires_at=rfc3339(record.expires_ms),
        )


PREVIEW: Final = Contract(
    operation="previewShare",
    summary="Return what a link would show, and what is redacted in it. Needs the role operator.",
    body=ApiShareQuestion,
    answers={200: ApiSharePreview},
)
CREATE: Final = Contract(
    operation="createShare",
    summary="Create a link to a page that was previewed. Needs the role operator.",
    body=ApiShareRequest,
    answers={201: ApiShareCreated},
)
LIST: Final = Contract(
    operation="listShares", summary="List the links, newest first.", answers={200: ApiShareList}
)
REVOKE: Final = Contract(
    operation="revokeShare",
    summary="End a link now; one that has ended stays as it is. Needs the role operator.",
    body=Nothing,
    answers={200: ApiShare},
)
