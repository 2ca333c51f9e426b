"""A TCP proxy on loopback that stalls or cuts the connections through it."""

import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

BLOCK = 65536


class TcpProxy:
    """Passes bytes on to a port of this machine, as long as it is not stalled."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.goes = Event()
        self.goes.set()
        self.lock = Lock()
        self.sockets: list[socket.socket] = []
        self.threads: list[Thread] = []

    def stall(self) -> None:
        """Keep the bytes that come from now on."""
        self.goes.clear()

    def go_on(self) -> None:
        """Pass on what was kept."""
        self.goes.set()

    def cut(self) -> None:
        """Close all connections; new ones are accepted."""
        with self.lock:
            for one in self.sockets:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self.sockets.clear()

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        with self.lock:
            self.sockets += [client, server]
        for ends in ((client, server), (server, client)):
            thread = Thread(target=self._pass_on, args=ends, daemon=True)
            thread.start()
            self.threads.append(thread)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while block := source.recv(BLOCK):
                _ = self.goes.wait()
                sink.sendall(block)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()  # the thread of the other direction closes the sink


@contextmanager
def tcp_proxy(target: int) -> Generator[TcpProxy]:
    """Serve until the end of the block."""
    proxy = TcpProxy(target)
    thread = Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.go_on()
        with suppress(OSError):
            proxy.listener.shutdown(socket.SHUT_RDWR)
        proxy.listener.close()
        proxy.cut()
        for one in (thread, *proxy.threads):
            one.join(5)
