"""MiniMax's way to tell of an error: beside an answer that says 200 and holds nothing. Pure."""

from collections.abc import Mapping
from http import HTTPStatus

from agent_core.kernel import JsonObject, json

STATUSES: Mapping[int, HTTPStatus] = {
    1002: HTTPStatus.TOO_MANY_REQUESTS,
    1004: HTTPStatus.UNAUTHORIZED,
    1008: HTTPStatus.PAYMENT_REQUIRED,
    2013: HTTPStatus.BAD_REQUEST,
}
"""The statuses that its codes stand for; every other is a fault of the server."""


def exposed(event: JsonObject) -> JsonObject:
    """Return what was told with its error where the others have theirs; as it was when there is none."""
    inner = event.get("base_resp")
    if inner is None or event.get("error"):
        return event
    answer = json.as_object(inner)
    code = answer.get("status_code")
    if not isinstance(code, int) or isinstance(code, bool) or code == 0:
        return event
    said = answer.get("status_msg")
    message = f"{said if isinstance(said, str) and said else 'no text'} (status_code {code})"
    status = STATUSES.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return {**event, "error": {"message": message, "code": int(status)}}
