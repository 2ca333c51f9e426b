"""Tokens and logins of the web front end. Only hashes are kept in memory."""

import secrets
from collections import deque
from collections.abc import Callable, Iterable
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

CODE_SIGNS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
"""None of them looks like another."""
CODE_GROUPS: Final = 2
CODE_S: Final = 600.0


class LoginCodes:
    """Codes that a person reads in the terminal and types in a browser: one at a time, valid once and for ten minutes."""

    def __init__(self, show: Callable[[str], None], *, clock: Clock) -> None:
        """Create none yet.

        Args:
            show: Shows a code in the terminal.
            clock: Time.
        """
        self._show = show
        self._clock = clock
        self._valid: bytes | None = None
        self._until_s = 0.0

    def offer(self) -> None:
        """Show a new code when none is valid."""
        if self._valid is not None and self._clock.monotonic_s() < self._until_s:
            return
        groups = ["".join(secrets.choice(CODE_SIGNS) for _ in range(4)) for _ in range(CODE_GROUPS)]
        self._valid = _digest("".join(groups))
        self._until_s = self._clock.monotonic_s() + CODE_S
        self._show("-".join(groups))

    def use(self, typed: str) -> bool:
        """Return whether a code is the valid one, which it is no longer then."""
        valid = self._valid
        if valid is None or self._clock.monotonic_s() >= self._until_s:
            return False
        if not compare_digest(_digest("".join(typed.upper().replace("-", " ").split())), valid):
            return False
        self._valid = None
        return True


class Access:
    """Tokens and logins of one server."""

    def __init__(
        self,
        *,
        port: int,
        bearer: str,
        one_off: str | None,
        codes: LoginCodes | None = None,
        is_secure: bool = False,
        clock: Clock,
    ) -> None:
        """Accept tokens, and codes.

        Args:
            port: Port of the server.
            bearer: Token of scripts, valid for as long as the server runs.
            one_off: Token of the URL that is printed; the first login with it uses it up. None: there is none.
            codes: Codes of the terminal; None: there are none.
            is_secure: Whether browsers use HTTPS.
            clock: Time.
        """
        self.cookie: Final = f"__Host-tiller-{port}" if is_secure else f"tiller-{port}"
        """Name of the cookie. Browsers send the cookies of one port to all ports, so that the name tells them apart."""
        self.is_secure: Final = is_secure
        self.codes: Final = codes
        self._bearer = _digest(bearer)
        self._one_off: bytes | None = None if one_off is None else _digest(one_off)
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
        return self._begin()

    def log_in_by_code(self, typed: str) -> str | None:
        """Exchange a code for the value of a cookie; None: it is not the valid one."""
        if self.codes is None or not self.codes.use(typed):
            return None
        return self._begin()

    def _begin(self) -> str:
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
