"""The OpenAPI document of the task API, made of the contracts of its routes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, encode
from tiller_server import VERSION
from tiller_server.web.guard import GuardedRoute
from tiller_server.web.tasks.models import ApiRefusal, Contract

REF: Final = "#/components/schemas/{name}"
JSON: Final = "application/json"
IN_PATH: Final = re.compile(r"\{(\w+)\}")


def openapi(routes: Sequence[GuardedRoute], *, cookie: str) -> JsonObject:
    """Return the OpenAPI 3.1 document of the routes that have a contract.

    Args:
        routes: Routes of the server.
        cookie: Name of the cookie of a login.
    """
    described = [(one, one.contract) for one in routes if one.contract is not None]
    types = {ApiRefusal, *(one for _, contract in described for one in _types(contract))}
    _, schemas = msgspec.json.schema_components(
        sorted(types, key=lambda one: one.__name__), ref_template=REF
    )
    paths: dict[str, dict[str, JsonValue]] = {}
    for route, contract in described:
        method = "post" if "POST" in (route.methods or ()) else "get"
        paths.setdefault(route.path, {})[method] = _operation(route, contract)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tiller", "version": VERSION},
        "paths": paths,
        "security": [{"bearer": []}, {"cookie": []}],
        "components": {
            "schemas": cast("JsonObject", schemas),  # msgspec describes them as Any
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
            },
        },
    }


def _types(contract: Contract) -> Iterator[type[msgspec.Struct]]:
    for one in (contract.body, *contract.answers.values()):
        if one is not None:
            yield one


def _operation(route: GuardedRoute, contract: Contract) -> JsonObject:
    operation: dict[str, JsonValue] = {
        "operationId": contract.operation,
        "summary": contract.summary,
        "parameters": [*_parameters(route, contract)],
        "responses": {
            **{str(status): _answer(status, one) for status, one in contract.answers.items()},
            "default": {"description": "Refusal", "content": _content(ApiRefusal)},
        },
    }
    if contract.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(contract.body)}
    if route.is_public:
        operation["security"] = []
    return operation


def _answer(status: int, kind: type[msgspec.Struct] | None) -> JsonObject:
    answer: JsonObject = {"description": HTTPStatus(status).phrase}
    return answer if kind is None else {**answer, "content": _content(kind)}


def _content(kind: type[msgspec.Struct]) -> JsonObject:
    return {JSON: {"schema": {"$ref": REF.format(name=kind.__name__)}}}


def _parameters(route: GuardedRoute, contract: Contract) -> Iterator[JsonValue]:
    for name in IN_PATH.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name, schema in _fields(contract.query).items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}
    for name, text in contract.headers.items():
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": text,
            "schema": {"type": "string"},
        }


def _fields(query: type[msgspec.Struct] | None) -> Mapping[str, JsonValue]:
    if query is None:
        return {}
    _, schemas = msgspec.json.schema_components([query], ref_template=REF)
    schema = cast("JsonObject", schemas[query.__name__])  # as above
    return as_object(schema.get("properties"))


def openapi_route(routes: Sequence[GuardedRoute], *, cookie: str) -> GuardedRoute:
    """Return the route that answers with the document of these routes, and of itself.

    Args:
        routes: Routes of the server.
        cookie: Name of the cookie of a login.
    """

    async def answer(_request: Request) -> Response:
        document = openapi((*routes, itself), cookie=cookie)
        return Response(encode(document), media_type=JSON)

    itself = GuardedRoute("/api/openapi.json", answer, method="GET", contract=DESCRIBE)
    return itself


DESCRIBE: Final = Contract(
    operation="describeApi", summary="Return this document.", answers={200: None}
)
