"""The TCP ports on which a process tree listens."""

from contextlib import suppress


def listening_ports(pid: int) -> tuple[int, ...]:
    """Return the ports of a process and its descendants, sorted; processes that cannot be examined are left out. Blocking."""
    import psutil  # noqa: PLC0415 - slow to import

    ports: set[int] = set()
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):
                ports |= {
                    one.laddr.port
                    for one in process.net_connections(kind="tcp")
                    if one.status == psutil.CONN_LISTEN
                }
    return tuple(sorted(ports))
