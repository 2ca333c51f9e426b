"""Tokens and logins of the web front end. Only hashes are kept in memory."""

import secrets
from collections import deque
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from agent_core.kernel import Clock

TOKEN_BYTES: Final = 32
MAX_LOGINS: Final = 64
"""Browsers that are logged in at once; the oldest login ends when there are more."""
LOGIN_S: Final = 7 * 24 * 3600.0
TRIES: Final = 10
TRIES_S: Final = 60.0


class Access:
    """Tokens and logins of one server."""

    def __init__(self, *, port: int, bearer: str, one_off: str, clock: Clock) -> None:
        """Accept two tokens.

        Args:
            port: Port of the server.
            bearer: Token of scripts, valid for as long as the server runs.
            one_off: Token of the URL that is printed; the first login with it uses it up.
            clock: Time.
        """
        self.cookie: Final = f"tiller-{port}"
        """Name of the cookie. Browsers send the cookies of one port to all ports, so that the name tells them apart."""
        self._bearer = _digest(bearer)
        self._one_off: bytes | None = _digest(one_off)
        self._logins: dict[bytes, float] = {}
        self._tries: deque[float] = deque()
        self._clock = clock

    def wait_s(self) -> int:
        """Return in how many seconds the next try is allowed; 0: now."""
        now_s = self._clock.monotonic_s()
        while self._tries and now_s - self._tries[0] >= TRIES_S:
            _ = self._tries.popleft()
        if len(self._tries) < TRIES:
            return 0
        return max(1, int(TRIES_S - (now_s - self._tries[0])))

    def count_try(self) -> None:
        """Record a try, which may be a guess."""
        self._tries.append(self._clock.monotonic_s())

    def log_in(self, token: str) -> str | None:
        """Exchange the one-off token for the value of a cookie; None: it is another token, or was used before."""
        if self._one_off is None or not compare_digest(_digest(token), self._one_off):
            return None
        self._one_off = None
        value = secrets.token_urlsafe(TOKEN_BYTES)
        while len(self._logins) >= MAX_LOGINS:
            del self._logins[next(iter(self._logins))]
        self._logins[_digest(value)] = self._clock.monotonic_s()
        return value

    def log_out(self, values: Iterable[str]) -> None:
        """End the logins of these cookies."""
        for value in values:
            _ = self._logins.pop(_digest(value), None)

    def is_logged_in(self, values: Iterable[str]) -> bool:
        """Return whether one of these cookies is that of a login."""
        now_s = self._clock.monotonic_s()
        digests = [_digest(value) for value in values]
        return any(
            compare_digest(one, login) and now_s - since_s < LOGIN_S
            for login, since_s in self._logins.items()
            for one in digests
        )

    def is_bearer(self, token: str) -> bool:
        """Return whether a token is that of scripts."""
        return compare_digest(_digest(token), self._bearer)


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()
