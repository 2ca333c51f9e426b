"""CPU time of another process, as finely as the system tells it."""

import sys
import time

import psutil


def cpu_s(pid: int) -> float:
    """Give user and system time of a process, ended threads included, its children left out."""
    if sys.platform == "linux":
        # The kernel's clock of a process is exact; /proc counts in steps of 10 ms, too coarse for 2,000 deltas.
        return time.clock_gettime((~pid << 3) | 2)
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system
