"""The processes of any machine that psutil knows."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from agent_core.workspace.processes.mark import MARK, ProcessMark, limit_of
from agent_core.workspace.processes.tree import Member


class PsutilTable:
    """Slower than reading /proc; psutil is imported when something is to be ended, not before."""

    def is_newest(self, pid: int) -> bool:
        """Return False: the newest process is unknown."""
        _ = pid
        return False

    def living(self, *, first: int, age_s: float) -> Mapping[int, Member]:
        """Return the living processes, whatever their age."""
        import psutil  # noqa: PLC0415 - slow to import

        _ = first, age_s
        found: dict[int, Member] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError), process.oneshot():
                # A process whose first thread has ended looks dead, and is not while others go on.
                if process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1:
                    found[process.pid] = Member(
                        process.pid,
                        started=process.create_time(),
                        parent=process.ppid() or 0,
                        session=os.getsid(process.pid),
                    )
        return found

    def carries(self, pid: int, mark: ProcessMark) -> Literal["limit", "variable"] | None:
        """Return how a process carries a mark: by limit or by environment variable; None: not, or not visibly."""
        import psutil  # noqa: PLC0415 - slow to import

        if mark.limit is not None and limit_of(pid) == mark.limit:
            return "limit"
        with suppress(psutil.Error, OSError):
            if mark.text in psutil.Process(pid).environ().get(MARK, ""):
                return "variable"
        return None

    def send(self, member: Member, number: signal.Signals) -> None:
        """Send a signal."""
        import psutil  # noqa: PLC0415 - slow to import

        with suppress(psutil.Error):
            process = psutil.Process(member.pid)
            if process.create_time() == member.started:
                process.send_signal(number)
