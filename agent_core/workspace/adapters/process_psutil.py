"""The processes of any machine that psutil knows."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from agent_core.workspace.adapters.process_tree import MARK, Member


class PsutilTable:
    """Slower than reading /proc; psutil is imported when something is to be ended, not before."""

    def living(self, *, since: int) -> Mapping[int, Member]:
        """Give the living processes, whatever their age."""
        import psutil  # noqa: PLC0415 - slow to import

        _ = since
        found: dict[int, Member] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError), process.oneshot():
                if process.status() != psutil.STATUS_ZOMBIE:
                    found[process.pid] = Member(
                        process.pid,
                        started=process.create_time(),
                        parent=process.ppid() or 0,
                        session=os.getsid(process.pid),
                    )
        return found

    def environment(self, pid: int) -> bytes:
        """Give the mark that a process was started with."""
        import psutil  # noqa: PLC0415 - slow to import

        with suppress(psutil.Error, OSError):
            return psutil.Process(pid).environ().get(MARK, "").encode()
        return b""

    def send(self, member: Member, number: signal.Signals) -> None:
        """Send a signal."""
        import psutil  # noqa: PLC0415 - slow to import

        with suppress(psutil.Error):
            process = psutil.Process(member.pid)
            if process.create_time() == member.started:
                process.send_signal(number)
