"""Carries messages between an editor and the daemon, with one thread that waits for descriptors."""

import select
from collections.abc import Callable

from tiller_server.daemon.shim.acp_proxy import AcpProxy
from tiller_server.daemon.shim.connection import Unreachable
from tiller_server.daemon.shim.discovery import DaemonDiscovery
from tiller_server.daemon.shim.endpoints import DaemonEnd, EditorEnd
from tiller_server.daemon.shim.message import read_object
from tiller_server.daemon.shim.proxy import ATTACHED, NEW, REPLAYING, LspProxy
from tiller_server.lsp.transport.framing import FrameError, FrameReader, LineCutter
from tiller_server.process.liveness import can_watch, is_alive

HELD_BYTES = 4 * 1024 * 1024
"""So much may wait for a daemon; then the editor waits."""
SHOWN_BYTES = 256 * 1024
"""So much may wait for the editor; then the daemon does, which knows what of it can be left out."""
FIRST_S = 15.0
"""How long a daemon may take to start, and then to answer `initialize`, until this process serves in its place."""
AGAIN_S = 30.0
LEAVE_S = 5.0
WATCH_S = 3.0
MAX_FAILURES = 5
"""So many daemons in a row that die before they have answered are enough."""
_ENDED = select.POLLHUP | select.POLLERR | select.POLLNVAL
_AGAIN = frozenset({"leaving", "token"})
"""Refusals after which another look is worth it: the daemon is being exchanged for another one."""


class Unserved(Exception):
    """No daemon has taken the editor's first words, which are all in `first_bytes`."""

    def __init__(self, why: str, *, first_bytes: bytes, code: str) -> None:
        super().__init__(why)
        self.first_bytes = first_bytes
        self.code = code


class RelayServices:
    """Functions that a relay gets from its process."""

    __slots__ = ("clock", "introduce", "note", "settle")

    def __init__(
        self,
        *,
        introduce: Callable[[str], bytes],
        note: Callable[[str], None],
        settle: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """Store the functions.

        Args:
            introduce: Creates the first line for a daemon from its token.
            note: Writes a sentence to the log.
            settle: Does what could wait until the editor has its first answer.
            clock: Seconds that only go forward.
        """
        self.introduce, self.note, self.settle, self.clock = introduce, note, settle, clock


class Relay:
    """One editor, and whatever daemon there is."""

    def __init__(
        self,
        editor: EditorEnd,
        search: DaemonDiscovery,
        means: RelayServices,
        *,
        proxy: LspProxy | AcpProxy,
        cutter: type[FrameReader | LineCutter] = FrameReader,
    ) -> None:
        """Make it; nothing is read yet.

        Args:
            editor: The client.
            search: Finds and starts daemons.
            means: Functions of the process.
            proxy: Relay logic of the client's protocol.
            cutter: Class of what cuts messages out of bytes.
        """
        self._editor = editor
        self._search = search
        self._means = means
        self._clock = means.clock
        self._note = means.note
        self._proxy = proxy
        self._cutter = cutter
        self._daemon: DaemonEnd | None = None
        self._failures = 0
        self._leaving: tuple[int, float] | None = None
        """The exit code, and when it is too late for everything else."""
        self._poll = _Poll()

    def run(self, *, stopped: Callable[[], int | None], wake_fd: int) -> int:
        """Pass messages on until the editor leaves; gives the exit code.

        Args:
            stopped: Gives an exit code once a signal has asked for the end.
            wake_fd: Becomes readable then.

        Raises:
            Unserved: No daemon serves, and the editor was told nothing yet.
        """
        self._search.begin(within_s=FIRST_S)
        watch = _Watch()
        while True:
            try:
                self._seek()
                self._turn(wake_fd)
            except Unreachable as error:
                return self._ended(error)
            if (code := stopped()) is not None:
                self._leave(code)
            if watch.is_gone(self._proxy.editors_pid, now=self._clock()):
                self._leave(0)
            if (code := self._is_over()) is not None:
                self._close()
                return code

    # ------------------------------------------------------------------ one turn

    def _seek(self) -> None:
        if self._daemon is not None:
            if self._daemon.is_deaf(self._clock(), after_s=FIRST_S):
                message = f"it has not answered for {FIRST_S:.0f} s"
                raise Unreachable(message)
            return
        if self._is_over() is not None:
            return
        found = self._search.look()
        if found is None:
            return
        sock, token = found
        self._daemon = DaemonEnd(sock, since=self._clock(), cutter=self._cutter())
        self._proxy.daemon_came(self._means.introduce(token))
        self._daemon.give(self._proxy.to_daemon)

    def _turn(self, wake_fd: int) -> None:
        editor, daemon, started = self._editor, self._daemon, self._search.started
        if daemon is not None and self._leaving and not self._proxy.to_daemon.waiting_bytes:
            daemon.finish()
        wanted = {} if self._leaving is not None else {wake_fd: select.POLLIN}
        if self._leaving is None and self._held_bytes() < HELD_BYTES:
            wanted[editor.reads] = select.POLLIN
        if started is not None and daemon is None:
            wanted[started.fd] = select.POLLIN
        if self._proxy.to_editor.waiting_bytes:
            wanted[editor.writes] = wanted.get(editor.writes, 0) | select.POLLOUT
        if daemon is not None:
            is_heard = self._proxy.to_editor.waiting_bytes < SHOWN_BYTES
            more = select.POLLOUT if self._proxy.to_daemon.waiting_bytes else 0
            wanted[daemon.fd] = select.POLLIN | more if is_heard else 0
        ready = self._poll.wait(wanted, timeout_s=self._wait_s())
        if ready.get(editor.reads, 0) & (select.POLLIN | _ENDED):
            self._hear_editor()
        if daemon is not None and ready.get(daemon.fd):
            self._hear_daemon(daemon)
        self._pass_on()

    def _hear_editor(self) -> None:
        try:
            bodies = self._editor.take()
        except FrameError as error:
            self._note(f"closing the connection, its input cannot be read: {error}")
            self._leave(1)
            return
        if bodies is None:
            self._leave(0)
            return
        for body in bodies:
            self._proxy.on_client(body)
        if self._daemon is not None and bodies:
            self._daemon.asked(self._clock())

    def _hear_daemon(self, daemon: DaemonEnd) -> None:
        try:
            bodies = daemon.take()
        except FrameError as error:
            self._note(f"what the daemon sends cannot be read: {error}")
            bodies = None
        if bodies is None:
            self._lose(daemon)
            return
        for body in bodies:
            self._proxy.on_server(body)

    def _pass_on(self) -> None:
        """Write first, look at what it was afterwards."""
        daemon, talk = self._daemon, self._proxy
        if daemon is not None:
            daemon.give(talk.to_daemon)
        try:
            self._editor.give(talk.to_editor)
        except OSError:
            self._leaving = (0, 0.0)  # nobody reads any more
            return
        if daemon is None or talk.stage != NEW or daemon.has_spoken:
            talk.inspect_forwarded()
        if self._editor.first_bytes is not None and talk.has_answered:
            self._editor.first_bytes = None
            self._means.settle()
        if talk.stage == ATTACHED:
            self._failures = 0
        if talk.exit_code is not None:
            self._leave(talk.exit_code)

    # ------------------------------------------------------------------ ends

    def _lose(self, daemon: DaemonEnd) -> None:
        daemon.close()
        self._daemon = None
        stage, served_s = self._proxy.stage, self._clock() - daemon.since
        self._proxy.daemon_gone()
        if self._leaving is not None:
            return
        if daemon.refusal is not None:
            self._refused(daemon.refusal)
            served_s = 0.0
        else:
            self._note(f"the daemon is gone after {served_s:.1f} s")
        if stage in {NEW, REPLAYING}:
            self._failures += 1
        if self._failures >= MAX_FAILURES:
            message = f"{self._failures} daemons ended before they had answered"
            raise Unreachable(message)
        if stage != REPLAYING:  # else the search for this one's predecessor goes on
            self._search.begin(within_s=AGAIN_S, after_s=served_s)

    def _refused(self, line: bytes) -> None:
        said = read_object(line) or {}
        why, code = str(said.get("why") or "it does not say why"), str(said.get("code") or "")
        if code not in _AGAIN:
            message = f"it refuses this editor: {why}"
            raise Unreachable(message, code=code)
        self._note(f"the daemon refuses this editor ({why}); looking for another one")

    def _leave(self, code: int) -> None:
        if self._leaving is None:
            self._leaving = (code, self._clock() + LEAVE_S)

    def _is_over(self) -> int | None:
        if self._leaving is None:
            return None
        code, until = self._leaving
        # What was said before the end is still for the first daemon, if one is about to come.
        talk = self._proxy
        is_early = talk.stage == NEW and talk.held.waiting_bytes > 0
        is_waiting = self._daemon is not None or is_early or talk.to_editor.waiting_bytes > 0
        return None if is_waiting and self._clock() < until else code

    def _ended(self, error: Unreachable) -> int:
        self._search.close()
        if self._editor.first_bytes is not None:
            first_bytes = bytes(self._editor.first_bytes)
            self._close()
            raise Unserved(str(error), first_bytes=first_bytes, code=error.code) from error
        self._note(f"there is no daemon any more: {error}")
        self._proxy.give_up(f"its daemon is gone, and {error}")
        until = self._clock() + LEAVE_S
        while self._proxy.to_editor.waiting_bytes and self._clock() < until:
            self._poll.wait({self._editor.writes: select.POLLOUT}, timeout_s=LEAVE_S)
            try:
                self._editor.give(self._proxy.to_editor)
            except OSError:
                break
        self._close()
        return 1

    def _close(self) -> None:
        self._search.close()
        if self._daemon is not None:
            self._daemon.close()
            self._daemon = None

    def _held_bytes(self) -> int:
        talk = self._proxy
        is_held = talk.stage != ATTACHED
        return talk.to_daemon.waiting_bytes + (talk.held.waiting_bytes if is_held else 0)

    def _wait_s(self) -> float:
        wait_s = WATCH_S if self._daemon is not None else self._search.again_s
        if self._leaving is not None:
            wait_s = min(wait_s, max(0.0, self._leaving[1] - self._clock()))
        return wait_s


class _Watch:
    """Notices that the editor has died without closing its pipes, which others may hold open."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._looked_at = 0.0

    def is_gone(self, pid: int | None, *, now: float) -> bool:
        """Return whether a process that was there has ended; looked up every few seconds."""
        if pid is None or now - self._looked_at < WATCH_S:
            return False
        self._looked_at = now
        if can_watch(pid):
            self._pid = pid
        return self._pid is not None and not is_alive(pid)


class _Poll:
    """Waits for descriptors. One that is not waited for is not registered: its end would wake us for ever."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._registered: dict[int, int] = {}

    def wait(self, wanted: dict[int, int], *, timeout_s: float) -> dict[int, int]:
        """Return what happened, by descriptor."""
        for fd in [fd for fd in self._registered if not wanted.get(fd)]:
            self._poll.unregister(fd)
            del self._registered[fd]
        for fd, mask in wanted.items():
            if mask and self._registered.get(fd) != mask:
                self._poll.register(fd, mask)
                self._registered[fd] = mask
        return dict(self._poll.poll(timeout_s * 1000))
