"""The user's auth.json: read, changed under a lock, and its tokens kept fresh."""

import os
import stat
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import mkstemp

import anyio
import anyio.to_thread

from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.private_file import make_private_folder
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.providers.auth.entries import (
    AuthEntry,
    AuthFile,
    InKeyring,
    StoredTokens,
    read_auth,
    secrets_of,
    with_entry,
)
from agent_core.providers.auth.file_lock import LockTaken, locked
from agent_core.providers.auth.keyring_store import drop_from_keyring
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.auth.oauth_tokens import LoginFailed, refreshed

FILE_BYTES = 1 << 20
LOCK_S = 30.0
REFRESH_S = 15.0
REFRESH_BEFORE_MS = 5 * 60 * 1000
"""A token that ends sooner is exchanged first: the answer of a model may take minutes."""
FOR_OTHERS = 0o077

Refresher = Callable[[OAuthFacts, StoredTokens, int], Awaitable[StoredTokens]]
"""Exchanges tokens, at a time in milliseconds; a `LoginFailed` when the provider does not want them any more."""
AuthFileChange = Callable[[AuthFile], AuthEntry | None]
_Mark = tuple[int, int, int]


class AuthStore:
    """Store of the user's keys and tokens; it reads the file again when the file has changed.

    `problems` are the errors in the file at the last read; the valid entries are used.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        refresh: Refresher = refreshed,
        redactor: Redactor | None = None,
    ) -> None:
        self.path = path
        self._redactor = redactor
        self._clock = clock
        self._refresh = refresh
        self._file = AuthFile()
        self._mark: _Mark | None = None
        self.problems: tuple[ConfigError, ...] = ()

    async def load(self) -> None:
        """Read the file if it has changed; one that is not there holds nothing."""
        read = await anyio.to_thread.run_sync(_read, self.path, self._mark)
        if read is not None:
            self._mark, self._file, self.problems = read
            if self._redactor is not None:
                self._redactor.hold(
                    *chain.from_iterable(map(secrets_of, self._file.entries.values()))
                )

    def entry(self, provider: str) -> AuthEntry | None:
        """Return what was stored for a provider when the file was last read."""
        return self._file.entries.get(provider)

    async def fresh(self, provider: str, oauth: OAuthFacts | None) -> AuthEntry | None:
        """Return what is stored now; tokens that end within five minutes are exchanged first.

        Once begun, an exchange is not cancelled: the provider may have made the old tokens useless already.

        Raises:
            LoginFailed: The tokens have ended and cannot be exchanged; the text says what to do.
        """
        await self.load()
        found = self.entry(provider)
        if not isinstance(found, StoredTokens) or oauth is None or not self._ends_soon(found):
            return found
        try:
            return await self._exchanged(provider, oauth)
        except (LoginFailed, LockTaken, OSError, TimeoutError) as error:
            if found.lives_until(self._clock.now_ms()):
                return found
            message = f"its login has ended and cannot be renewed ({_why(error)}); sign in again (tiller auth login {provider})"
            raise LoginFailed(message) from None

    async def put(self, provider: str, entry: AuthEntry) -> None:
        """Store what one provider is opened with.

        Raises:
            ConfigError: The file is broken or cannot be written; it is as it was.
        """
        await self._write(provider, entry)

    async def remove(self, provider: str) -> bool:
        """Forget a provider, and its key in the system's keyring; False: nothing was stored for it.

        Raises:
            ConfigError: The file is broken or cannot be written; it is as it was.
        """
        await self.load()
        if provider not in self._file.raw and not self._file.broken:
            return False
        in_keyring = isinstance(self.entry(provider), InKeyring)
        await self._write(provider, None)
        if in_keyring:
            await drop_from_keyring(provider)
        return True

    async def _write(self, provider: str, entry: AuthEntry | None) -> None:
        try:
            async with locked(self.path, wait_s=LOCK_S):
                await self.load()
                if self._file.broken:
                    raise self.problems[0]
                await self._replace(with_entry(self._file, provider, entry))
        except (OSError, LockTaken) as error:
            message = f"{self.path} cannot be written ({_why(error)}); nothing was changed"
            raise ConfigError(message, path=self.path) from error

    async def _exchanged(self, provider: str, oauth: OAuthFacts) -> AuthEntry | None:
        async with locked(self.path, wait_s=LOCK_S):
            await self.load()
            found = self.entry(provider)
            # Another process may have been faster, or the user may have logged out.
            if not isinstance(found, StoredTokens) or not self._ends_soon(found):
                return found
            tokens = found
            with anyio.CancelScope(shield=True):
                with anyio.fail_after(REFRESH_S):
                    tokens = await self._refresh(oauth, found, self._clock.now_ms())
                await self._replace(with_entry(self._file, provider, tokens))
            return tokens

    async def _replace(self, content: JsonObject) -> None:
        await anyio.to_thread.run_sync(partial(_replace, self.path, content))
        await self.load()

    def _ends_soon(self, tokens: StoredTokens) -> bool:
        return not tokens.lives_until(self._clock.now_ms() + REFRESH_BEFORE_MS)


def _read(
    path: Path, last_mark: _Mark | None
) -> tuple[_Mark | None, AuthFile, tuple[ConfigError, ...]] | None:
    """Read the file, unless it is the one that is known."""
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            mark = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            if mark == last_mark:
                return None
            raw = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        return None, AuthFile(), ()
    except OSError as error:
        problem = ConfigError(
            f"{path} cannot be read ({error.strerror}); no key of it is used", path=path
        )
        return None, AuthFile(problems=(problem,), broken=True), (problem,)
    if len(raw) > FILE_BYTES:
        problem = ConfigError(
            f"{path} is larger than {FILE_BYTES} bytes; no key of it is used", path=path
        )
        return mark, AuthFile(problems=(problem,), broken=True), (problem,)
    try:
        file_now = read_auth(raw.decode("utf-8-sig"), path=path)
    except UnicodeDecodeError:
        problem = ConfigError(f"{path} is not UTF-8 text; no key of it is used", path=path)
        return mark, AuthFile(problems=(problem,), broken=True), (problem,)
    problems = file_now.problems
    if sys.platform != "win32" and facts.st_mode & FOR_OTHERS:
        mode = stat.S_IMODE(facts.st_mode)
        message = f"{path} can be read by others (mode {mode:04o}); its keys are used, but run: chmod 600 {path}"
        problems = (*problems, ConfigError(message, path=path))
    return mark, file_now, problems


def _replace(path: Path, content: JsonObject) -> None:
    """Write it whole or not at all, for the user's eyes only; a link stays a link."""
    real = path.resolve()
    make_private_folder(real.parent)
    fd, temporary = mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            _ = file.write(json.encode(content) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        _ = Path(temporary).replace(real)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {REFRESH_S:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
