"""From where the server is reached: its address, its certificate, the proxy before it, and the hosts that it answers to."""

import ipaddress
import re
import socket as sockets
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.values import Value

PORT: Final = 7433
HTTPS_PORT: Final = 443
LOCALHOST: Final = "localhost"
LOOPBACK: Final = ("127.0.0.1", LOCALHOST, "::1")
BACKLOG: Final = 128
SYSTEM_BYTES: Final = 256 << 10
HANDSHAKES: Final = 8
"""More than the messages of a handshake in each direction."""
_ANY: Final[Mapping[str, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1", LOCALHOST: "127.0.0.1"}  # noqa: S104 - connected to, not listened on
_HOST: Final = re.compile(
    r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*(:[0-9]{1,5})?"
)


class CannotListen(TillerError):
    """The port is in use, or the system refuses it."""


class Certificate(Value, frozen=True, kw_only=True):
    """A certificate that browsers are shown, and the hosts that it is for."""

    file: Path
    key: Path
    names: Sequence[str]


class ListenAddress(Value, frozen=True, kw_only=True):
    """Where the server listens, and by which names it is reached."""

    address: str = "127.0.0.1"
    port: int | None = None
    """None: the usual one, or any that is free."""
    certificate: Certificate | None = None
    proxy: str | None = None
    """Public host, with its port unless that is 443, of a proxy that serves HTTPS and passes requests on."""

    @property
    def needs_code(self) -> bool:
        """Whether other machines can reach it, so that a login needs the code of the terminal."""
        return self.proxy is not None or not _is_loopback(self.address)

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by HTTPS."""
        return self.proxy is not None or self.certificate is not None

    @property
    def local_address(self) -> str:
        """The address to which this machine connects."""
        return _ANY.get(self.address, self.address)

    def origins(self, port: int) -> Mapping[str, str]:
        """Return the origin of the page for each value of Host that is answered, that of the public address first.

        Args:
            port: Port on which it listens.
        """
        if self.proxy is not None:
            local = (f"{_written(name)}:{port}" for name in LOOPBACK)
            return {self.proxy: f"https://{self.proxy}", **{one: f"http://{one}" for one in local}}
        if self.certificate is not None:
            names = [_written(one) for one in self.certificate.names]
            if (own := _written(self.address)) in names:
                names = [own, *names]
            hosts = [f"{name}:{port}" for name in names]
            bare = names if port == HTTPS_PORT else []
            return {host: f"https://{host}" for host in (*bare, *hosts)}
        own = "127.0.0.1" if self.address == LOCALHOST else self.address
        hosts = [f"{_written(name)}:{port}" for name in (own, *LOOPBACK)]
        return {host: f"http://{host}" for host in hosts}


def read_listen_address(
    listen: str,
    *,
    port: int | None = None,
    cert: Path | None = None,
    key: Path | None = None,
    proxy: str | None = None,
) -> ListenAddress:
    """Return how the server is reached. Blocking.

    Args:
        listen: Address, or address and port.
        port: Port, when `listen` has none.
        cert: File with a certificate and those that it was signed with, as PEM.
        key: File with its key.
        proxy: Public host of a proxy before the server.

    Raises:
        UsageError: These do not fit together, or the server would be open to others without protection.
    """
    address, listened = _place(listen)
    if port is not None and listened is not None and port != listened:
        message = f"--listen names port {listened} and --port {port}; name one port"
        raise UsageError(message)
    chosen = port if listened is None else listened
    if chosen is not None and not 0 <= chosen < 1 << 16:
        message = f"--port is {chosen}; name one from 1 to 65535"
        raise UsageError(message)
    if (cert is None) != (key is None):
        message = "--tls-cert and --tls-key belong together; name both files"
        raise UsageError(message)
    if cert is not None and proxy is not None:
        message = (
            "--tls-cert and --behind-proxy exclude each other; let the proxy have the certificate"
        )
        raise UsageError(message)
    if cert is None and proxy is None and not _is_loopback(address):
        usual = chosen or PORT
        message = (
            f"--listen is {address!r}, which other machines reach: add --tls-cert and --tls-key, or --behind-proxy HOST, "
            f"or listen on this machine and use ssh -L {usual}:127.0.0.1:{usual} HOST"
        )
        raise UsageError(message)
    if proxy is not None and _HOST.fullmatch(proxy.lower()) is None:
        message = f"--behind-proxy is {proxy!r}; name the public host, such as tiller.example.com"
        raise UsageError(message)
    certificate = None if cert is None or key is None else _certificate(cert, key)
    return ListenAddress(
        address=address,
        port=chosen,
        certificate=certificate,
        proxy=None if proxy is None else proxy.lower(),
    )


def listen(listen_address: ListenAddress) -> sockets.socket:
    """Return a socket that listens.

    Raises:
        CannotListen: The address or the port cannot be used.
    """
    host = "127.0.0.1" if listen_address.address == LOCALHOST else listen_address.address
    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    for wanted in (PORT, 0) if listen_address.port is None else (listen_address.port,):
        listener = sockets.socket(family, sockets.SOCK_STREAM)
        try:
            listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            # Inherited by each connection. asyncio sets it only where a socket names its protocol; without it the body of
            # an answer waits 40 ms for the acknowledgement of its head.
            listener.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            # Inherited by each connection, too: what the system holds for a reader that has stopped is bounded.
            listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, SYSTEM_BYTES)
            listener.bind((host, wanted))
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            if listen_address.port is not None:
                message = f"port {listen_address.port} of {host} cannot be used ({error.strerror}); name another"
                raise CannotListen(message) from error
        else:
            listener.settimeout(0)
            return listener
    message = f"no port of {host} can be used"
    raise CannotListen(message)


def _place(text: str) -> tuple[str, int | None]:
    """Return the address and the port of `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`."""
    host, colon, number = text.rpartition(":")
    is_plain = not colon or _is_address(text)
    address = (text if is_plain else host).removeprefix("[").removesuffix("]")
    is_number = is_plain or (number.isascii() and number.isdigit() and len(number) <= len("65535"))
    if not is_number or not (address == LOCALHOST or _is_address(address)):
        message = f"--listen is {text!r}; name an address of this machine, such as 127.0.0.1 or 192.168.1.7:7433"
        raise UsageError(message)
    return address, None if is_plain else int(number)


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False


def _is_loopback(address: str) -> bool:
    return address in LOOPBACK


def _written(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _certificate(cert: Path, key: Path) -> Certificate:
    """Check a certificate as a browser does, except for who has signed it."""
    try:
        names = _names(cert, key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "verify_message", None) or (
            "they are no PEM, do not belong together, or the key has a password"
            if isinstance(error, ssl.SSLError)
            else getattr(error, "strerror", None) or error
        )
        message = f"--tls-cert {str(cert)!r} with --tls-key {str(key)!r} cannot be used: {reason}"
        raise UsageError(message) from error
    if not names:
        message = f"--tls-cert {str(cert)!r} names no host (subjectAltName); make one for the host that browsers open"
        raise UsageError(message)
    return Certificate(file=cert, key=key, names=names)


def _names(cert: Path, key: Path) -> Sequence[str]:
    """Return the hosts of a certificate, by a handshake with ourselves: the system reads it, and knows whether it is valid."""
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # An encrypted key would ask for its password on the terminal.
    ours.load_cert_chain(cert, key, password="")
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.check_hostname = False
    theirs.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    theirs.load_verify_locations(cert)
    to_us, to_them = ssl.MemoryBIO(), ssl.MemoryBIO()
    browser = theirs.wrap_bio(to_them, to_us)
    server = ours.wrap_bio(to_us, to_them, server_side=True)
    for _ in range(HANDSHAKES):
        for side in (browser, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    found = browser.getpeercert() or {}
    named: list[str] = []
    for kind, name in found.get("subjectAltName", ()):
        if kind == "IP Address":
            named.append(str(ipaddress.ip_address(str(name))))
        elif kind == "DNS" and "*" not in name:
            named.append(str(name).lower())
    return named
