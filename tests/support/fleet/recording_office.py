"""A forge and a model in one, over loopback: it records posts and calls, and fails after committing when it is told to."""

import json
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from typing_extensions import override


class RecordingOffice(ThreadingHTTPServer):
    """Its records. Posts have the marker of their key, as comments have."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *, fails_every: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = Lock()
        self.posts: list[str] = []
        self.calls: Counter[str] = Counter()
        self.outages: Counter[str] = Counter()
        """Jobs whose next model call is refused, and how often yet."""
        self.fails_every = fails_every
        """Each such post is answered 502 after it was committed; 0: none."""

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that was killed."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: RecordingOffice  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with self.server.lock:
            self._answer(200, self.server.posts)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["name"]
        with self.server.lock:
            if self.path == "/calls":
                is_out = self.server.outages[body["job"]] > 0
                self.server.outages[body["job"]] -= is_out
                self.server.calls[name] += not is_out
                status = 503 if is_out else 200
            else:
                self.server.posts.append(name)
                count = len(self.server.posts)
                fails = self.server.fails_every and count % self.server.fails_every == 0
                status = 502 if fails else 200
        self._answer(status, {})

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        _ = self.wfile.write(content)


@contextmanager
def recording_office(*, fails_every: int = 0) -> Generator[RecordingOffice]:
    """Serve until the end of the block."""
    with RecordingOffice(fails_every=fails_every) as office:
        thread = Thread(target=office.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield office
        office.shutdown()
        thread.join()
