"""`agent/auth/login`: sign in with a browser; keys are given in a terminal."""

from functools import partial
from typing import Any

import anyio

from agent_core.kernel import rfc3339
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.operations.accounts import how_to_key, log_in, named, providers_of
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.sign_in import Door, Page, door_of
from tiller_server.lsp.wire import AuthLoginParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Return the page that the user must open, or the page of a login that is pending already.

    The result of the login is shown as a message, and is part of `agent/auth/status`.

    Raises:
        RpcError: No such provider, it takes a key, or the login cannot begin.
    """
    asked = parse(AuthLoginParams, params, method="agent/auth/login")
    found = named(await providers_of(front), asked.provider, asked="agent/auth/login")
    door = door_of(found)
    if door.oauth is None:
        if door.is_open:
            return {"state": "ok"}
        data = {"kind": "AuthRequired", "retryable": False, "provider": door.provider}
        raise RpcError(REQUEST_FAILED, how_to_key(door), data)
    signing_in = front.host.signing_in
    async with signing_in.beginning:
        page = signing_in.page(door.provider) or await _Login(front, door).begun()
    out = {"state": "pending", "url": page.url, "expires": rfc3339(page.ends_ms)}
    return out if page.code is None else {**out, "userCode": page.code}


class _Login:
    """One that goes on when the request has its answer."""

    def __init__(self, front: Front, door: Door) -> None:
        self._front = front
        self._door = door
        self._begun = anyio.Event()
        self._page: Page | None = None
        self._failure: RpcError | None = None

    async def begun(self) -> Page:
        """Begin, and give the page as soon as it is known.

        Raises:
            RpcError: It failed before there was one.
        """
        self._front.host.start(self._wait, what="a login", is_cut=True)
        await self._begun.wait()
        if self._page is None:
            raise self._failure or RpcError(REQUEST_FAILED, "the login ended at once")
        return self._page

    async def _wait(self) -> None:
        tell = partial(_tell, self._front)
        try:
            await log_in(self._front, self._door, show=self._show)
        except RpcError as error:
            self._failure = error
            if self._page is not None:
                tell(error.message, kind=1)
        else:
            tell(f"signed in to {self._door.name}.", kind=3)
        finally:
            self._begun.set()

    def _show(self, page: Page) -> None:
        self._page = page
        self._begun.set()


def _tell(front: Front, text: str, *, kind: int) -> None:
    told = {"type": kind, "message": f"Tiller: {text}"}
    _ = front.connection.notify("window/showMessage", told)
