"""Bodies and queries of requests as values, and values as answers."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent_core.kernel.values import Value, threadsafe
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.web.guard import RequestRefused, refused
from tiller_server.web.methods import Role

Input = TypeVar("Input", bound=msgspec.Struct)
INVALID_PARAMS: Final = -32602
CONFLICT: Final = 409
TOO_MANY: Final = 429
STATUSES: Final[Mapping[str, int]] = {
    "SessionNotFound": 404,
    "PermissionDenied": 403,
    "RootNotAllowed": 400,
    "Overloaded": TOO_MANY,
    "QueueFull": TOO_MANY,
}
"""HTTP statuses of refusals of the daemon; any other is 409."""
AGAIN_S: Final = 5


async def body_of(request: Request, kind: type[Input]) -> Input:
    """Return the body of a request.

    Raises:
        RequestRefused: It is not of this kind.
    """
    try:
        return msgspec.json.decode(await request.body(), type=threadsafe(kind))
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestRefused(refused(400, f"the body cannot be read: {error}")) from error


def query_of(request: Request, kind: type[Input]) -> Input:
    """Return the query of a request.

    Raises:
        RequestRefused: It is not of this kind.
    """
    try:
        return msgspec.convert(dict(request.query_params), threadsafe(kind), strict=False)
    except msgspec.ValidationError as error:
        raise RequestRefused(refused(400, f"the query cannot be read: {error}")) from error


def json_answer(
    answer: Value, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer with a value."""
    return Response(
        msgspec.json.encode(answer),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


def check_operator(role: Role, subject: str) -> None:
    """Check that the server runs as operator.

    Args:
        role: Rights of the server.
        subject: Subject of the refusal, such as `a link`.

    Raises:
        RequestRefused: It runs in another role.
    """
    if role != "operator":
        why = f"{subject} needs the role operator, and tiller web runs as {role}; start it with --role operator"
        raise RequestRefused(refused(403, why))


@contextmanager
def answering_refusals() -> Generator[None]:
    """Answer with the refusals of the daemon in the context.

    Raises:
        RequestRefused: The daemon refuses a request, or cannot be reached.
    """
    try:
        yield
    except AgentRefused as error:
        raise RequestRefused(_daemon_refusal(error)) from error


def _daemon_refusal(error: AgentRefused) -> Response:
    message = " ".join(str(error).split())
    if error.code is None:
        return refused(503, message, wait_s=AGAIN_S)
    if error.code == INVALID_PARAMS:
        return refused(400, message)
    status = STATUSES.get(str(error.data.get("kind")), CONFLICT)
    return refused(status, message, wait_s=AGAIN_S if status == TOO_MANY else 0)
