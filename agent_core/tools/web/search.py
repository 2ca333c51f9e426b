"""Web search over the service that the user configured: Brave, Tavily or a SearXNG instance."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.json import as_object, decode, encode
from agent_core.kernel.text import for_model, one_line
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.tools.port import ToolContext, ToolResult, text_result
from agent_core.tools.web.address import Resolve, clean_url, host_of
from agent_core.tools.web.values import WebRequest, WebResponse, fenced

if TYPE_CHECKING:
    from agent_core.tools.web.requests import WebClient

EXTRACT_CHARS: Final = 500
ADMITTED: Final = frozenset({401, 403})
FIRST_ERROR: Final = 400


class SearchHit(Value, frozen=True, kw_only=True):
    """One result of a search."""

    title: str
    url: str
    extract: str


class SearchService(Value, frozen=True, kw_only=True):
    """A search service: how it is asked, and how it answers."""

    url: str | None
    """Its address; None: the user must give one."""
    key_variable: str | None
    """The variable of the environment that holds its key; None: it has none."""
    request: Callable[[str, str, int, str], WebRequest]
    """Makes the request from the address, the query, the number of results and the key."""
    hits: Callable[[JsonObject], JsonValue]
    """Returns the list of results in the answer."""
    extract: str
    """Name of the field with the extract."""


def _brave(url: str, query: str, count: int, key: str) -> WebRequest:
    return WebRequest(
        url=f"{url}?{urlencode({'q': query, 'count': count})}",
        headers={"accept": "application/json", "x-subscription-token": key},
    )


def _tavily(url: str, query: str, count: int, key: str) -> WebRequest:
    return WebRequest(
        url=url,
        method="POST",
        headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
        body=encode({"query": query, "max_results": count}),
    )


def _searxng(url: str, query: str, _count: int, _key: str) -> WebRequest:
    address = f"{url.rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}"
    return WebRequest(url=address, headers={"accept": "application/json"})


SERVICES: Final[Mapping[str, SearchService]] = {
    "brave": SearchService(
        url="https://api.search.brave.com/res/v1/web/search",
        key_variable="BRAVE_API_KEY",
        request=_brave,
        hits=lambda answer: as_object(answer.get("web")).get("results"),
        extract="description",
    ),
    "tavily": SearchService(
        url="https://api.tavily.com/search",
        key_variable="TAVILY_API_KEY",
        request=_tavily,
        hits=lambda answer: answer.get("results"),
        extract="content",
    ),
    "searxng": SearchService(
        url=None,
        key_variable=None,
        request=_searxng,
        hits=lambda answer: answer.get("results"),
        extract="content",
    ),
}


def service_url(options: Mapping[str, JsonValue]) -> str:
    """Return the address of the configured service.

    Raises:
        ToolError: It is missing, or cannot be used.
    """
    given = options.get("url") or _service(options).url
    if not isinstance(given, str):
        message = (
            "This search service has no address: the user must set web.searchUrl in settings.json."
        )
        raise ToolError(message)
    try:
        return clean_url(given)
    except ValueError as error:
        message = f"The address of the search service in web.searchUrl cannot be used: {error}."
        raise ToolError(message) from None


async def search_web(
    query: str, count: int, context: ToolContext, *, resolve: Resolve | None
) -> ToolResult:
    """Search and return the results as data.

    Raises:
        ToolError: The service cannot be asked, or gave no results that can be read.
    """
    options = context.options
    service, url = _service(options), service_url(options)
    key = context.workspace.env.get(service.key_variable or "", "")
    if service.key_variable and not key:
        message = f"There is no key for the search service: the user must set {service.key_variable} in the environment."
        raise ToolError(message)
    # The user named the address: it may be one of their own network.
    reachable = {**options, "privateHosts": [host_of(url)]}
    client = await run_in_thread(lambda: _client(reachable, resolve))
    response = await client.send(service.request(url, query, count, key))
    hits = _hits(service, response, count)
    if not hits:
        return text_result("Nothing was found. Try other words.", details={"results": []})
    lines = [
        f"{number}. {hit.title}\n   {hit.url}\n   {hit.extract}".rstrip()
        for number, hit in enumerate(hits, 1)
    ]
    found: list[JsonValue] = [{"title": hit.title, "url": hit.url} for hit in hits]
    return text_result(fenced("\n".join(lines)), details={"results": found})


def _client(options: Mapping[str, JsonValue], resolve: Resolve | None) -> "WebClient":
    """Import the client and make it. Blocking: the import takes a tenth of a second."""
    from agent_core.tools.web.requests import client_of  # noqa: PLC0415 - at first use

    return client_of(options, resolve)


def _service(options: Mapping[str, JsonValue]) -> SearchService:
    service = SERVICES.get(str(options.get("service")))
    if service is None:
        message = "No search service is configured: the user must set web.search in settings.json."
        raise ToolError(message)
    return service


def _hits(service: SearchService, response: WebResponse, count: int) -> Sequence[SearchHit]:
    host = host_of(response.url)
    if response.status in ADMITTED:
        message = f"{host} refused the search ({response.status}): the user must check the key, or what it may do."
        raise ToolError(message)
    if response.status >= FIRST_ERROR:
        message = f"{host} answered the search with {response.status} {one_line(response.reason)}."
        raise ToolError(message)
    try:
        listed = service.hits(as_object(decode(response.body)))
    except (ValueError, RecursionError):
        listed = None
    if not isinstance(listed, list):
        message = f"{host} answered the search with something that is no list of results."
        raise ToolError(message)
    return [
        SearchHit(
            title=_text(one, "title"),
            url=_text(one, "url"),
            extract=_text(one, service.extract)[:EXTRACT_CHARS],
        )
        for one in map(as_object, listed[:count])
    ]


def _text(hit: JsonObject, name: str) -> str:
    value = hit.get(name)
    return one_line(for_model(value)) if isinstance(value, str) else ""
