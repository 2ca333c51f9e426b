"""How the first process of a command ends, and how the command in a container of its own does."""

import os
import subprocess
from contextlib import suppress

import anyio
from anyio import lowlevel, to_thread

from agent_core.workspace.port import ProcessEnd
from agent_core.workspace.sandbox.backends.keeper import KeeperReport, read_report

REPORT_BYTES = 65_536


class Exit:
    """How the first process ends.

    It is not reaped before the tree has been ended: until then its number, which is also that of its group and
    session, cannot come to mean anything else.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self._end: ProcessEnd | None = None
        self._pidfd = _open_pidfd(popen.pid)

    @property
    def is_over(self) -> bool:
        """Whether its end has been seen."""
        return self._end is not None

    @property
    def end(self) -> ProcessEnd | None:
        """The end, once it has been seen."""
        return self._end

    @property
    def reaped(self) -> bool:
        """Whether the system has forgotten the process."""
        return self._popen.returncode is not None

    async def wait(self) -> ProcessEnd:
        """Wait for the end; one at a time."""
        await lowlevel.checkpoint_if_cancelled()
        while self._end is None:
            if self._pidfd is None:
                _ = await to_thread.run_sync(
                    self._popen.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
                )
                self._end = _from_code(self._popen.returncode)
                break
            try:
                await anyio.wait_readable(self._pidfd)
            except anyio.ClosedResourceError:
                continue  # it was reaped meanwhile, which sets the end
            if self._end is None:
                self._end = self._look()
        return self._end

    def reap(self) -> None:
        """Reap the process if it has ended, and close its pidfd."""
        if self._popen.poll() is None:
            return
        if self._end is None:
            self._end = _from_code(self._popen.returncode)
        if self._pidfd is not None:
            anyio.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _look(self) -> ProcessEnd | None:
        seen = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return None
        if seen.si_code == os.CLD_EXITED:
            return ProcessEnd(exit_code=seen.si_status)
        return ProcessEnd(exit_code=None, signal=seen.si_status)


class KeptExit:
    """How a command ends that has a keeper: by what the keeper reports, else by how the first process ends."""

    def __init__(self, first: Exit, report: int, *, key: str) -> None:
        """Wrap the reading end of the keeper's error output; it does not block, and is closed by `close`."""
        self._first = first
        self._key = key
        self._report: int | None = report
        self._said = b""
        self._end: ProcessEnd | None = None
        self.was_alone = False
        """Whether the command left nothing running. False until it is over."""

    @property
    def is_over(self) -> bool:
        """Whether its end has been seen."""
        return self._end is not None

    @property
    def end(self) -> ProcessEnd | None:
        """The end, once it has been seen."""
        return self._end

    @property
    def complaint(self) -> bytes:
        """Output of the keeper in place of a report: usually why the command never ran. Empty if there is one."""
        return b"" if read_report(self._text(), key=self._key) else self._said

    async def wait(self) -> ProcessEnd:
        """Wait for the end; one at a time."""
        await lowlevel.checkpoint_if_cancelled()
        while self._end is None and self._report is not None:
            try:
                data = os.read(self._report, REPORT_BYTES)
            except BlockingIOError:
                with suppress(anyio.ClosedResourceError):
                    await anyio.wait_readable(self._report)
                continue
            if not data:
                break
            self._said = (self._said + data)[-REPORT_BYTES:]
            self._take(read_report(self._text(), key=self._key))
        if self._end is None:
            self._end = _from_kept(await self._first.wait())
        return self._end

    def close(self) -> None:
        """Close the descriptor."""
        if self._report is not None:
            anyio.notify_closing(self._report)
            os.close(self._report)
            self._report = None

    def _take(self, report: KeeperReport | None) -> None:
        if report is not None:
            self._end = ProcessEnd(exit_code=report.exit_code, signal=report.signal)
            self.was_alone = report.was_alone

    def _text(self) -> str:
        return self._said.decode("utf-8", "replace")


def _from_kept(end: ProcessEnd) -> ProcessEnd:
    """Read the end of bubblewrap as that of what it kept: it gives 128 and the number for a signal."""
    if end.exit_code is not None and end.exit_code > SIGNALLED:
        return ProcessEnd(exit_code=None, signal=end.exit_code - SIGNALLED)
    return end


SIGNALLED = 128


def _open_pidfd(pid: int) -> int | None:
    """Open a descriptor that can be waited for; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _from_code(code: int | None) -> ProcessEnd:
    if code is not None and code < 0:
        return ProcessEnd(exit_code=None, signal=-code)
    return ProcessEnd(exit_code=code)
