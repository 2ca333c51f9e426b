"""`agent/auth/login`: sign in with a browser; keys are given in a terminal."""

from functools import partial

import anyio

from agent_core.kernel import JsonObject, rfc3339
from tiller_server.lsp.feature import feature
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.operations.accounts import (
    find_provider,
    key_instructions,
    log_in,
    providers_of,
)
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.sign_in import SignInMethod, VerificationPage, sign_in_method
from tiller_server.lsp.wire.accounts import AUTH_LOGIN, AuthLoginParams


@feature(AUTH_LOGIN)
async def auth_login(client: ConnectedClient, params: AuthLoginParams) -> JsonObject:
    """Return the page that the user must open, or the page of a login that is pending already.

    The result of the login is shown as a message, and is part of `agent/auth/status`.

    Raises:
        RpcError: No such provider, it takes a key, or the login cannot begin.
    """
    found = find_provider(await providers_of(client), params.provider, asked=AUTH_LOGIN.name)
    door = sign_in_method(found)
    if door.oauth is None:
        if door.is_open:
            return {"state": "ok"}
        data = {"kind": "AuthRequired", "retryable": False, "provider": door.provider}
        raise RpcError(REQUEST_FAILED, key_instructions(door), data)
    signing_in = client.host.signing_in
    async with signing_in.beginning:
        page = signing_in.page(door.provider) or await _Login(client, door).begun()
    out: JsonObject = {"state": "pending", "url": page.url, "expires": rfc3339(page.ends_ms)}
    return out if page.code is None else {**out, "userCode": page.code}


class _Login:
    """One that goes on when the request has its answer."""

    def __init__(self, client: ConnectedClient, door: SignInMethod) -> None:
        self._client = client
        self._door = door
        self._begun = anyio.Event()
        self._page: VerificationPage | None = None
        self._failure: RpcError | None = None

    async def begun(self) -> VerificationPage:
        """Begin; return the page as soon as it is known.

        Raises:
            RpcError: It failed before there was one.
        """
        self._client.host.start(self._wait, what="a login", is_cut=True)
        await self._begun.wait()
        if self._page is None:
            raise self._failure or RpcError(REQUEST_FAILED, "the login ended at once")
        return self._page

    async def _wait(self) -> None:
        show_message = partial(_show_message, self._client)
        try:
            await log_in(self._client, self._door, show=self._show)
        except RpcError as error:
            self._failure = error
            if self._page is not None:
                show_message(error.message, kind=1)
        else:
            show_message(f"signed in to {self._door.name}.", kind=3)
        finally:
            self._begun.set()

    def _show(self, page: VerificationPage) -> None:
        self._page = page
        self._begun.set()


def _show_message(client: ConnectedClient, text: str, *, kind: int) -> None:
    params = {"type": kind, "message": f"Tiller: {text}"}
    _ = client.connection.notify("window/showMessage", params)
