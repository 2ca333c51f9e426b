"""Definitions of servers, and the files in which they stand."""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, assert_never
from urllib.parse import urlsplit

import msgspec

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import is_object
from agent_core.kernel.threads import ReadAhead, run_in_thread
from agent_core.kernel.unknown_keys import NOTES, did_you_mean
from agent_core.kernel.values import Value
from agent_core.resources.load_result import JsonTextError, read_object
from agent_core.resources.paths import project_folder
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.environment import is_secret, steers_programs

McpServerOrigin = Literal["user", "project", "client"]
"""Owner of the file that names the server; a server of a project has fewer rights, and so has one that a client brings."""
CLIENT: Final = Path("/the client")
"""Stands for the file of a server that a client brings."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
MOST_SERVERS: Final = 50
LONGEST_S: Final = 86_400.0
STDIO_KEYS: Final = frozenset({"type", "command", "args", "env", "cwd", "needs", "sandbox"})
HTTP_KEYS: Final = frozenset({"type", "url", "headers"})
OUTERMOST: Final = ("mcpServers",)
SWITCHES: Final = ("disabled", "enabled")
COMMON_KEYS: Final = frozenset({*SWITCHES, "timeoutS", "startTimeoutS"})
HTTP_TYPES: Final = frozenset({"http", "streamable-http", "streamableHttp"})
WORD_OF_NEED: Final[Mapping[str, Needs]] = {"network": "network", "sockets": "sockets"}

VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class Stdio(Value, frozen=True, kw_only=True):
    """A program that we start and speak with."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables in addition to the environment of every command, also secrets if the file names them."""
    cwd: Path
    needs: frozenset[Needs] = frozenset()
    contained: bool = True


class Http(Value, frozen=True, kw_only=True):
    """A server that runs already, somewhere."""

    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class Server(Value, frozen=True, kw_only=True):
    """One server as it is to be reached."""

    name: str
    origin: McpServerOrigin
    at: Path
    """The file that says so."""
    way: Stdio | Http
    call_timeout_s: float | None = None
    """None: as the settings say."""
    start_timeout_s: float | None = None


class DisabledServer(Value, frozen=True, kw_only=True):
    """An entry that is switched off; it is listed, and never started."""

    name: str
    origin: McpServerOrigin
    at: Path
    way: str
    """How the server would be reached, as `shown_way` has it; empty when the entry is not valid."""


class Defined(Value, frozen=True, kw_only=True):
    """The definitions read from a file."""

    entries: tuple[Server | DisabledServer, ...] = ()
    """All that are valid, in the order of the file."""
    problems: tuple[str, ...] = ()
    """A sentence for each thing that is not used as it stands."""

    @property
    def servers(self) -> tuple[Server, ...]:
        """Those that are switched on."""
        return tuple(entry for entry in self.entries if isinstance(entry, Server))


def read_definitions(
    document: JsonObject, *, at: Path, origin: McpServerOrigin, root: Path, env: Mapping[str, str]
) -> Defined:
    """Read the servers of one file; an invalid entry does not exclude the others.

    Args:
        document: The file: `{"mcpServers": {name: {"command" …} or {"url" …}}}`.
        at: Path of the file.
        origin: Owner of the file.
        root: The workspace, where programs start.
        env: The environment for `${NAME}`; a project's file gets no secrets from it.
    """
    named = document.get("mcpServers", {})
    if not is_object(named):
        return Defined(problems=(f'{at}: "mcpServers" is to be an object of servers by name',))
    reading = _Reading(at=at, origin=origin, root=root, env=env)
    reading.problems.extend(
        f'{at}: "{unknown}" is no key of mcp.json, so it has no effect{did_you_mean(unknown, OUTERMOST)}'
        for unknown in document
        if unknown not in OUTERMOST and not unknown.startswith(NOTES)
    )
    read = [reading.server(name, entry) for name, entry in named.items()]
    entries = [entry for entry in read if entry is not None]
    excess = [entry for entry in entries if isinstance(entry, Server)][MOST_SERVERS:]
    if excess:
        reading.problems.append(f"{at}: only the first {MOST_SERVERS} servers are used")
        left_out = {server.name for server in excess}
        entries = [entry for entry in entries if entry.name not in left_out]
    return Defined(entries=tuple(entries), problems=tuple(reading.problems))


def shown_way(server: Server) -> str:
    """Describe in one line how a server is reached; values of variables and headers are not told."""
    match server.way:
        case Stdio(argv=argv, env=env, needs=needs):
            names = f" with {', '.join(sorted(env))}" if env else ""
            network = " and the network" if needs else ""
            return f"{' '.join(argv)}{names}{network}"
        case Http(url=url):
            return without_password(url)
        case _:
            assert_never(server.way)


def without_password(url: str) -> str:
    """Return a URL without user name, password, query and fragment, which may hold keys; `…` stands for a query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="…" if parts.query else "", fragment="").geturl()


class _Reading(Value, frozen=True, kw_only=True):
    at: Path
    origin: McpServerOrigin
    root: Path
    env: Mapping[str, str]
    problems: list[str] = msgspec.field(default_factory=list[str])

    def server(self, name: str, entry: JsonValue) -> Server | DisabledServer | None:
        try:
            if NAME.fullmatch(name) is None or "__" in name:
                message = "its name is to be of letters, digits, `-`, `_` and `.`, at most 40, without `__`"
                raise _Unfit(message)
            if not is_object(entry):
                message = f"it is to be an object, not {entry!r}"
                raise _Unfit(message)
            if _is_on(entry):
                return self.valid_server(name, entry)
            return self._disabled(name, entry)
        except ValueError as error:
            # Not only ours: an address may be none in many ways.
            self._tell(name, f"{error}; the server is left out")
            return None

    def _disabled(self, name: str, entry: JsonObject) -> DisabledServer:
        """Read an entry that is switched off; nothing else in it is a problem."""
        try:
            way = shown_way(msgspec.structs.replace(self, problems=[]).valid_server(name, entry))
        except ValueError:
            way = ""
        return DisabledServer(name=name, origin=self.origin, at=self.at, way=way)

    def valid_server(self, name: str, entry: JsonObject) -> Server:
        if any(
            is_object(value) and ("command" in value or "url" in value) for value in entry.values()
        ):
            self._tell(name, "it has a server inside of it, which is not used")
        way = self._http(name, entry) if "url" in entry else self._stdio(name, entry)
        keys = HTTP_KEYS if isinstance(way, Http) else STDIO_KEYS
        allowed = sorted(keys | COMMON_KEYS)
        for unknown in entry:
            if unknown not in allowed and not unknown.startswith(NOTES):
                hint = did_you_mean(unknown, allowed)
                self._tell(
                    name, f'"{unknown}" is no key of a server here, so it has no effect{hint}'
                )
        return Server(
            name=name,
            origin=self.origin,
            at=self.at,
            way=way,
            call_timeout_s=_seconds(entry, "timeoutS"),
            start_timeout_s=_seconds(entry, "startTimeoutS"),
        )

    def _stdio(self, name: str, entry: JsonObject) -> Stdio:
        kind = entry.get("type", "stdio")
        if kind != "stdio" or "command" not in entry:
            message = 'it needs a "command" to start, or a "url" to reach'
            raise _Unfit(message)
        command = self._text(entry["command"], "command")
        args = tuple(self._text(one, "args") for one in _list(entry.get("args"), "args"))
        cwd = entry.get("cwd")
        folder = self.root if cwd is None else self.root / self._text(cwd, "cwd")
        return Stdio(
            argv=(command, *args),
            env=self._given(name, self._texts(entry.get("env"), "env")),
            cwd=folder,
            needs=frozenset(_need(one) for one in _list(entry.get("needs"), "needs")),
            contained=self._is_contained(name, entry.get("sandbox", "auto")),
        )

    def _http(self, name: str, entry: JsonObject) -> Http:
        kind = entry.get("type", "http")
        if kind not in HTTP_TYPES:
            message = f'its type is {kind!r}; only "stdio" and "http" (streamable) are spoken'
            raise _Unfit(message)
        url = self._text(entry["url"], "url")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            message = f"{without_password(url)!r} is no address of http or https"
            raise _Unfit(message)
        headers = self._texts(entry.get("headers"), "headers")
        if any("\n" in value or "\r" in value for value in headers.values()):
            message = "a header has a line break"
            raise _Unfit(message)
        if parts.scheme == "http" and headers and not _is_here(parts.hostname):
            self._tell(name, "its headers go over the net without encryption; use https")
        return Http(url=url, headers=headers)

    def _given(self, name: str, env: Mapping[str, str]) -> Mapping[str, str]:
        """Leave out what makes programs load or run other code: it would act before containment does."""
        given = {key: value for key, value in env.items() if not steers_programs(key)}
        for key in sorted(env.keys() - given.keys()):
            self._tell(
                name,
                f"{key} is left out, as it makes programs run other code or talk to others: if you mean it, begin the command with `env`, and `{key}=…` as an argument",
            )
        return given

    def _is_contained(self, name: str, wanted: JsonValue) -> bool:
        if wanted not in {"auto", "off"}:
            message = f'"sandbox" is "auto" or "off", not {wanted!r}'
            raise _Unfit(message)
        if wanted == "off" and self.origin != "user":
            self._tell(
                name, '"sandbox": "off" counts only in your own mcp.json; it stays contained'
            )
            return True
        return wanted == "auto"

    def _texts(self, value: JsonValue, key: str) -> Mapping[str, str]:
        if value is None:
            return {}
        if not is_object(value):
            message = f"{key!r} is to be an object of texts"
            raise _Unfit(message)
        return {name: self._text(one, key) for name, one in value.items()}

    def _text(self, value: JsonValue, key: str) -> str:
        if not isinstance(value, str) or "\0" in value or not (value or key in {"env", "args"}):
            message = f"{key!r} is to be text, not {value!r}"
            raise _Unfit(message)
        return value if self.origin == "client" else expanded(value, self._looked_up)

    def _looked_up(self, name: str) -> str | None:
        value = self.env.get(name)
        if value is not None and self.origin == "project" and is_secret(name, value):
            message = f"it asks for {name}, a secret of yours, which a project does not get; name the server in your own mcp.json"
            raise _Unfit(message)
        return value

    def _tell(self, name: str, what: str) -> None:
        self.problems.append(f"{self.at}: MCP server {name!r}: {what}")


def _is_on(entry: JsonObject) -> bool:
    for key in SWITCHES:
        if key in entry and not isinstance(entry[key], bool):
            message = f'"{key}" is to be true or false, not {entry[key]!r}'
            raise _Unfit(message)
    return entry.get("disabled") is not True and entry.get("enabled") is not False


def _list(value: JsonValue, key: str) -> Iterator[JsonValue]:
    if value is None:
        return iter(())
    if isinstance(value, str) or not isinstance(value, list | tuple):
        message = f"{key!r} is to be a list"
        raise _Unfit(message)
    return iter(value)


def _need(value: JsonValue) -> Needs:
    need = WORD_OF_NEED.get(value) if isinstance(value, str) else None
    if need is None:
        message = f'"needs" knows "network" and "sockets", not {value!r}'
        raise _Unfit(message)
    return need


def _seconds(entry: JsonObject, key: str) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or value is True or not 0 < value <= LONGEST_S:
        message = f"{key!r} is to be a number of seconds, not {value!r}"
        raise _Unfit(message)
    return float(value)


def _is_here(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


class _Unfit(ValueError):
    """An entry cannot be used; the text says why."""


def expanded(text: str, look_up: Callable[[str], str | None]) -> str:
    """Replace the variables of a text.

    Raises:
        _Unfit: One is not set and says nothing of what to take then.
    """

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        set_to = look_up(name)
        if set_to:
            return set_to
        if otherwise is None and set_to is None:
            message = f"the variable {name} is not set; set it, or write ${{{name}:-otherwise}}"
            raise _Unfit(message)
        return otherwise or ""

    return VARIABLE.sub(value, text)


FILE_BYTES: Final = 1024 * 1024


def project_files(root: Path) -> tuple[Path, Path]:
    """Return the files in which a workspace may name servers; the later one wins."""
    return root / ".mcp.json", project_folder(root) / "mcp.json"


class ServerFiles(Value, frozen=True, kw_only=True):
    """The files that define servers.

    Of two servers with one name, the one defined nearer to the workspace wins, also when it is switched off.
    """

    config: Path
    """The user's configuration folder."""
    root: Path
    env: Mapping[str, str]
    is_trusted: Callable[[], bool]
    """Whether the workspace may configure us; its files are not even opened before."""
    expected: Callable[[Path], str | None] = lambda _: None
    """Returns the SHA-256 of the trusted content of a workspace file; None: any."""
    of_client: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """Servers that the client of the session brings. They have the rights of a project's, and no text in them is a variable."""

    ahead: ReadAhead[Defined] = msgspec.field(default_factory=ReadAhead[Defined])

    async def read(self) -> Defined:
        """Read the current definitions. Never raises: a file that cannot be read is a problem in the result."""
        # Asked here: the answer belongs to the thread of the session.
        return await run_in_thread(self._read, self.is_trusted())

    def read_ahead(self) -> Callable[[], None]:
        """Return a blocking function that reads for the next `of_run`."""
        is_trusted = self.is_trusted()
        return self.ahead.prepare(is_trusted, partial(self._read, is_trusted))

    async def of_run(self) -> Defined:
        """Return the definitions for the run that begins."""
        is_trusted = self.is_trusted()
        return await self.ahead.take(is_trusted, partial(self._read, is_trusted))

    def read_now(self) -> Defined:
        """Do as `read` does, blocking."""
        return self._read(self.is_trusted())

    def _read(self, with_project: bool) -> Defined:  # noqa: FBT001 - for a thread
        entries: dict[str, Server | DisabledServer] = {}
        problems: list[str] = []
        places: list[tuple[Path, McpServerOrigin]] = [(self.config / "mcp.json", "user")]
        if with_project:
            places.extend((path, "project") for path in project_files(self.root))
        for path, origin in places:
            defined = self._of(path, origin)
            problems.extend(defined.problems)
            entries.update({entry.name: entry for entry in defined.entries})
        if self.of_client:
            defined = read_definitions(
                {"mcpServers": self.of_client},
                at=CLIENT,
                origin="client",
                root=self.root,
                env={},
            )
            problems.extend(defined.problems)
            entries.update({entry.name: entry for entry in defined.entries})
        return Defined(entries=tuple(entries.values()), problems=tuple(problems))

    def _of(self, path: Path, origin: McpServerOrigin) -> Defined:
        expected = self.expected(path) if origin == "project" else None
        try:
            raw = _bytes_of(path)
            if raw is None:
                return Defined()
            if expected is not None and hashlib.sha256(raw).hexdigest() != expected:
                return Defined(
                    problems=(f"{path} is not what was trusted any more; it is not used",)
                )
            document = read_object(raw.decode("utf-8-sig"))
        except JsonTextError as error:
            where = f":{error.place.line}:{error.place.column}" if error.place else ""
            return Defined(problems=(f"{path}{where} {error}; no MCP server of it is used",))
        except (OSError, UnicodeError, RecursionError) as error:
            return Defined(problems=(f"{path} cannot be read: {_why(error)}",))
        return read_definitions(document, at=path, origin=origin, root=self.root, env=self.env)


def _why(error: OSError | UnicodeError | RecursionError) -> str:
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeError():
            return "it is not UTF-8 text"
        case RecursionError():
            return "it is nested too deeply"


def _bytes_of(path: Path) -> bytes | None:
    """Read a file; None when there is none.

    Raises:
        OSError: It cannot be read, is none, or is too large.
    """
    # Not to wait for a writer when it is a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is no regular file")
    with os.fdopen(handle, "rb") as file:
        raw = file.read(FILE_BYTES + 1)
    if len(raw) > FILE_BYTES:
        raise OSError(0, f"it has more than {FILE_BYTES} bytes")
    return raw
