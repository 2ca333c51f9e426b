"""The tools `fetch` and `web_search`: pages of the web, as data for the model."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import AfterValidator, Field

from agent_core.kernel import JsonValue
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import ArgumentCount, ModelTool, ToolArguments, schema_of
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec

if TYPE_CHECKING:
    from agent_core.tools.web.address import Resolve
    from agent_core.tools.web.page_fetch import PageFetcher

TITLE_CHARS: Final = 120
MOST_RESULTS: Final = 20


def _clean(url: str) -> str:
    from agent_core.tools.web.address import clean_url  # noqa: PLC0415 - at first use

    return clean_url(url)


class FetchArguments(ToolArguments):
    """Arguments of `fetch`."""

    other_names: ClassVar[Mapping[str, str]] = {"uri": "url", "link": "url"}

    url: Annotated[str, AfterValidator(_clean)] = Field(
        description="The address of the page, http or https"
    )


class WebSearchArguments(ToolArguments):
    """Arguments of `web_search`."""

    other_names: ClassVar[Mapping[str, str]] = {"q": "query", "search": "query", "limit": "count"}

    query: str = Field(description="What to look for, as one would type it")
    count: Annotated[ArgumentCount, Field(le=MOST_RESULTS)] = Field(
        default=8, description=f"How many results, at most {MOST_RESULTS}"
    )


class SearchTool(ModelTool[WebSearchArguments], frozen=True, kw_only=True):
    """The tool `web_search`, which models see once a search service is configured."""

    is_configured: Callable[[], bool]

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return self.is_configured()


def fetch_tool(resolve: "Resolve | None" = None) -> ModelTool[FetchArguments]:
    """Make the tool.

    Args:
        resolve: Looks hosts up; None: the system's resolver.
    """

    async def fetch(arguments: FetchArguments, context: ToolContext) -> ToolResult:
        fetch_page = await run_in_thread(_page_fetcher)
        return await fetch_page(arguments.url, context, resolve=resolve)

    return ModelTool(
        spec=ToolSpec(
            name="fetch",
            description=(
                "Read a web page or another text from the internet by its URL: HTML comes as Markdown. Long pages are cut, "
                "and the whole text is kept in a file that is named. Nothing private is reached, such as localhost."
            ),
            parameters=schema_of(FetchArguments),
            kind="other",
            parallel_safe=True,
            snippet="Read a web page",
        ),
        arguments=FetchArguments,
        titled=lambda arguments: _title("fetch", arguments.get("url")),
        execute=fetch,
        reaches=_page_host,
    )


def web_search_tool(
    is_configured: Callable[[], bool], *, resolve: "Resolve | None" = None
) -> SearchTool:
    """Make the tool.

    Args:
        is_configured: Whether a search service is configured at present.
        resolve: Looks hosts up; None: the system's resolver.
    """

    async def search(arguments: WebSearchArguments, context: ToolContext) -> ToolResult:
        from agent_core.tools.web.search import search_web  # noqa: PLC0415 - at first use

        return await search_web(arguments.query, arguments.count, context, resolve=resolve)

    return SearchTool(
        spec=ToolSpec(
            name="web_search",
            description="Search the web. Gives titles, URLs and extracts; read a page with fetch.",
            parameters=schema_of(WebSearchArguments),
            kind="other",
            parallel_safe=True,
            snippet="Search the web",
        ),
        arguments=WebSearchArguments,
        titled=lambda arguments: _title("search", arguments.get("query")),
        execute=search,
        reaches=_service_host,
        is_configured=is_configured,
    )


def _page_host(arguments: Mapping[str, object], _: Mapping[str, JsonValue]) -> str:
    from agent_core.tools.web.address import host_of  # noqa: PLC0415 - at first use

    return host_of(str(arguments["url"]))


def _service_host(_: Mapping[str, object], options: Mapping[str, JsonValue]) -> str:
    from agent_core.tools.web.address import host_of  # noqa: PLC0415 - at first use
    from agent_core.tools.web.search import service_url  # noqa: PLC0415 - at first use

    return host_of(service_url(options))


def _page_fetcher() -> "PageFetcher":
    """Import the function that fetches. Blocking: it takes a tenth of a second."""
    from agent_core.tools.web.page_fetch import fetch_page  # noqa: PLC0415 - at first use

    return fetch_page


def _title(word: str, about: JsonValue) -> str:
    text = " ".join(about.split()) if isinstance(about, str) else ""
    return f"{word} {text if len(text) <= TITLE_CHARS else text[:TITLE_CHARS] + '…'}".rstrip()
