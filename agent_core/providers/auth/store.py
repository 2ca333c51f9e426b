"""The stored credentials of the user: a file of its own, or the keyring of the system."""

import errno
import math
import os
import stat
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import mkstemp

import anyio
import anyio.to_thread

from agent_core.kernel import Clock, JsonObject, json
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.private_file import make_private_folder
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.threads import run_in_thread
from agent_core.providers.auth.oauth import (
    AuthEntry,
    AuthFile,
    InKeyring,
    LoginFailed,
    OAuthFacts,
    StoredTokens,
    read_auth,
    refreshed,
    secrets_of,
    with_entry,
)

SUFFIX = ".lock"
FILE_MODE = 0o600
LOOK_S = 0.05
_TAKEN = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK})


class LockTaken(Exception):
    """Another process holds the lock and did not let go in time."""


if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@asynccontextmanager
async def locked(path: Path, *, wait_s: float) -> AsyncGenerator[None]:
    """Hold the lock of a file, which need not exist; it ends with the context, or with the process.

    Raises:
        LockTaken: Another holder kept the lock for `wait_s`.
        OSError: The folder cannot be written.
    """
    lock = path.with_name(path.name + SUFFIX)
    fd = await run_in_thread(_opened, lock)
    try:
        with anyio.move_on_after(wait_s) as waiting:
            # The kernel's lock is asked for again and again: a thread that waits in it could not be called back.
            while not _taken(fd):  # noqa: ASYNC110 - nobody in this process could set an event
                await anyio.sleep(LOOK_S)
        if waiting.cancelled_caught:
            message = f"{lock} is held by another process; try again"
            raise LockTaken(message)
        yield
    finally:
        os.close(fd)


def _opened(lock: Path) -> int:
    make_private_folder(lock.parent)
    return os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), FILE_MODE)


def _taken(fd: int) -> bool:
    try:
        _take(fd)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


SERVICE = "tiller"


class KeyringMissing(Exception):
    """There is no keyring that can be used; the text says why."""


def can_have_keyring() -> bool:
    """Return whether the library is there; costs little and opens nothing."""
    return find_spec("keyring") is not None


async def keyring_key(provider: str) -> str | None:
    """Look a key up; None: there is none, or no keyring that can be used."""
    if not can_have_keyring():
        return None
    return await anyio.to_thread.run_sync(_get, provider)


async def keep_in_keyring(provider: str, key: str) -> None:
    """Store a key.

    Raises:
        KeyringMissing: There is no keyring that takes it.
    """
    if not can_have_keyring():
        raise KeyringMissing("the keyring needs an extra: pip install 'tillerd[secrets]'")
    await anyio.to_thread.run_sync(_set, provider, key)


async def drop_from_keyring(provider: str) -> None:
    """Forget a key, if there is one."""
    if can_have_keyring():
        await anyio.to_thread.run_sync(_delete, provider)


def _get(provider: str) -> str | None:
    import keyring  # noqa: PLC0415 - 60 ms and D-Bus, only when a key is looked for
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        return keyring.get_password(SERVICE, provider)
    except KeyringError:
        return None


def _set(provider: str, key: str) -> None:
    import keyring  # noqa: PLC0415 - see above
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        keyring.set_password(SERVICE, provider, key)
    except KeyringError as error:
        message = f"this system has no keyring that can be used ({type(error).__name__})"
        raise KeyringMissing(message) from None


def _delete(provider: str) -> None:
    import keyring  # noqa: PLC0415 - see above
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        keyring.delete_password(SERVICE, provider)
    except KeyringError:
        return


FILE_BYTES = 1 << 20
LOCK_S = 30.0
REFRESH_S = 15.0
REFRESH_BEFORE_MS = 5 * 60 * 1000
"""A token that ends sooner is exchanged first: the answer of a model may take minutes."""
FOR_OTHERS = 0o077

Refresher = Callable[[OAuthFacts, StoredTokens, int], Awaitable[StoredTokens]]
"""Exchanges tokens, at a time in milliseconds; a `LoginFailed` when the provider does not want them any more."""
FRESH_S = 1.0
"""How long what was read for a request, or at the start of a run, serves other requests."""
_Mark = tuple[int, int, int]
AuthRead = tuple[_Mark | None, AuthFile, tuple[ConfigError, ...]]
"""A content of the file, and its problems."""


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
        self._read_s = -math.inf
        self.problems: tuple[ConfigError, ...] = ()

    async def load(self) -> None:
        """Read the file if it has changed; one that is not there holds nothing. The next request reads it again."""
        self.adopt(await run_in_thread(self.read))
        self._read_s = -math.inf

    def read(self) -> AuthRead | None:
        """Read the file if it has changed, and change nothing here. Blocking."""
        return _read(self.path, self._mark)

    def adopt(self, read: AuthRead | None) -> None:
        """Hold what `read` has just returned."""
        self._read_s = self._clock.monotonic_s()
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
        """Return what is stored; tokens that end within five minutes are exchanged first.

        The file is read again, unless it was within the last second, by this method or for `adopt`, and the entry does
        not end soon.

        Once begun, an exchange is not cancelled: the provider may have made the old tokens useless already.

        Raises:
            LoginFailed: The tokens have ended and cannot be exchanged; the text says what to do.
        """
        found = self.entry(provider)
        is_recent = self._clock.monotonic_s() - self._read_s <= FRESH_S
        if not is_recent or (isinstance(found, StoredTokens) and self._ends_soon(found)):
            self.adopt(await run_in_thread(self.read))
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


def _read(path: Path, last_mark: _Mark | None) -> AuthRead | None:
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
