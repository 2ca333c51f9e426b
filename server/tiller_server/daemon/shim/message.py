"""JSON-RPC messages, read only as far as one who passes them on must know them."""

JsonDict = dict[str, object]

PROGRESS = b'{"jsonrpc":"2.0","method":"$/progress"'
"""So the daemon's most frequent message begins; it is passed on unread."""
_HEAD_BYTES = 512


class RelayedMessage:
    """A message whose JSON has been read."""

    __slots__ = ("body", "error", "id", "method", "params", "result")

    def __init__(self, fields: JsonDict, body: bytes) -> None:
        self.body = body
        self.id = fields.get("id")
        self.method = fields.get("method")
        self.params = as_object(fields.get("params"))
        self.result = fields.get("result")
        self.error = fields.get("error")

    @property
    def key(self) -> str | None:
        """Key of the id, in which the number 1 and the text "1" differ; None without a usable id."""
        return key_of(self.id)

    @property
    def is_request(self) -> bool:
        """Whether it must be answered."""
        return isinstance(self.method, str) and self.key is not None

    @property
    def is_response(self) -> bool:
        """Whether it answers one."""
        return self.method is None and self.key is not None


def read(body: bytes) -> RelayedMessage | None:
    """Read a message; None when it is no JSON object."""
    fields = read_object(body)
    return None if fields is None else RelayedMessage(fields, body)


def read_object(text: bytes) -> JsonDict | None:
    """Read a JSON object; None when it is none."""
    import json  # noqa: PLC0415 - costs 7 ms; what an editor waits for is passed on before it is read

    try:
        return as_object(json.loads(text.decode(), parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def write(fields: JsonDict) -> bytes:
    """Write a message."""
    import json  # noqa: PLC0415 - see above

    return json.dumps(fields, separators=(",", ":")).encode()


def as_object(value: object) -> JsonDict | None:
    """Return a JSON value as the object it is, or None."""
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] - as above


def as_list(value: object) -> list[object]:
    """Return a JSON value as the array it is, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - of JSON values


def key_of(id_: object) -> str | None:
    """Return what tells an id from others; None when it is none."""
    if isinstance(id_, str):
        return f"s{id_}"
    return f"i{id_}" if isinstance(id_, int) and not isinstance(id_, bool) else None


def is_work_done(body: bytes) -> bool:
    """Return whether a progress message may begin or end a line that editors show."""
    head = body[:_HEAD_BYTES]
    return b'"kind":"begin"' in head or b'"kind":"end"' in head


def result(id_: object, value: object) -> bytes:
    """Write an answer."""
    return write({"jsonrpc": "2.0", "id": id_, "result": value})


def error(id_: object, code: int, text: str, data: JsonDict | None = None) -> bytes:
    """Write an answer that is an error."""
    fields: JsonDict = {"code": code, "message": text}
    if data is not None:
        fields["data"] = data
    return write({"jsonrpc": "2.0", "id": id_, "error": fields})


def request(id_: object, method: str, params: JsonDict) -> bytes:
    """Write a request."""
    return write({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def notification(method: str, params: JsonDict) -> bytes:
    """Write a notification."""
    return write({"jsonrpc": "2.0", "method": method, "params": params})


def _refuse(name: str) -> object:
    raise ValueError(name)
