"""An S3-compatible store on loopback: moto behind real HTTP, with faults where a test wants them."""

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from threading import Event, Thread
from typing import Any, Final, Literal

import httpx
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

Fault = Literal["403", "503", "truncated", "slow"]
KEY: Final = "key-of-tests"
SECRET: Final = "not-a-real-secret-0123456789"
REFUSALS: Final[Mapping[str, tuple[str, str]]] = {
    "403": ("403 Forbidden", "AccessDenied"),
    "503": ("503 Service Unavailable", "SlowDown"),
}
NAMES: Final = count()
Start = Callable[..., object]


class S3Server:
    """Buckets on a port of this machine."""

    def __init__(self, port: int, application: Callable[..., Iterable[bytes]]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[tuple[str, str]] = []
        """Methods and paths, oldest first."""
        self.faults: list[tuple[str, Fault]] = []
        """Methods with the fault of their next request; one that has happened is removed."""
        self.is_down: Fault | None = None
        """The fault of every request."""
        self._goes_on = Event()
        self._application = application

    @property
    def env(self) -> dict[str, str]:
        """Variables with which the store is reached."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_REGION": "us-east-1",
        }

    def make_bucket(self) -> str:
        """Create a bucket and return its name."""
        name = f"attachments-{next(NAMES)}"
        _ = httpx.put(f"{self.url}/{name}").raise_for_status()
        return name

    def mend(self) -> None:
        """End all faults."""
        self.is_down = None
        self.faults.clear()
        self._goes_on.set()
        self._goes_on = Event()

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Return the objects of a bucket by their keys."""
        return {key: one.value for key, one in self._keys(bucket).items()}

    def types(self, bucket: str) -> dict[str, str]:
        """Return the content types of the objects of a bucket."""
        return {key: one.metadata["content-type"] for key, one in self._keys(bucket).items()}

    def damage(self, bucket: str, key: str, data: bytes) -> None:
        """Replace the content of an object."""
        self._keys(bucket)[key].value = data

    def age(self, bucket: str, key: str, at_s: float) -> None:
        """Set the time at which an object was stored."""
        stored_at = datetime.fromtimestamp(at_s, UTC).replace(tzinfo=None)
        self._keys(bucket)[key].last_modified = stored_at

    def time_of(self, bucket: str, key: str) -> float:
        """Return the time at which an object was stored."""
        stored_at: datetime = self._keys(bucket)[key].last_modified
        return stored_at.replace(tzinfo=UTC).timestamp()

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Answer a request; the interface of WSGI."""
        method = environ["REQUEST_METHOD"]
        self.requests.append((method, environ["PATH_INFO"]))
        match self._fault(method):
            case None:
                return self._application(environ, start)
            case "truncated":
                return self._truncated(environ, start)
            case "slow":
                _ = self._goes_on.wait(30)
                return self._application(environ, start)
            case code:
                status, name = REFUSALS[code]
                _ = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                body = f"<Error><Code>{name}</Code><Message>no</Message></Error>".encode()
                start(
                    status,
                    [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))],
                )
                return [b"" if method == "HEAD" else body]

    def _fault(self, method: str) -> Fault | None:
        if self.is_down is not None:
            return self.is_down
        for fault in self.faults:
            if fault[0] == method:
                self.faults.remove(fault)
                return fault[1]
        return None

    def _truncated(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        """Answer with half of the body and the length of all of it."""
        body = b"".join(self._application(environ, start))
        return [body[: len(body) // 2]]

    @staticmethod
    def _keys(bucket: str) -> dict[str, Any]:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket].keys


@contextmanager
def s3_server() -> Generator[S3Server]:
    """Run a server in a thread."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    listener = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler
    )
    server = S3Server(listener.server_port, application)
    listener.app = server
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.mend()
        listener.shutdown()
        thread.join()
        listener.server_close()
