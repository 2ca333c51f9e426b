"""A tool of a server, as models and the tool runner see it."""

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from anyio import current_time, to_thread

from agent_core.kernel import JsonObject
from agent_core.kernel.text import one_line
from agent_core.mcp.approvals import Declared
from agent_core.mcp.port import McpProgress, Pictures, ServerFailed, result_of
from agent_core.mcp.server import McpServer
from agent_core.tools import CheckedCall, ToolContext, ToolResult, ToolSpec, error_result

TELL_S: Final = 0.5
"""Progress is shown no more often."""
SHOWN_CHARS: Final = 200
TITLE_KEYS: Final = 3


class McpTool:
    """A tool that another server runs. Models see it while what it declares is what a person approved."""

    def __init__(
        self,
        name: str,
        declared: Declared,
        *,
        server: McpServer,
        is_approved: Callable[["McpTool"], bool],
        pictures: Pictures,
    ) -> None:
        self.declared = declared
        self._server = server
        self._is_approved = is_approved
        self._pictures = pictures
        self._spec = _spec(name, declared, server=server.server.name)

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model and the runner see it."""
        return self._spec

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return self._is_approved(self)

    @property
    def server(self) -> McpServer:
        """The server that runs the tool."""
        return self._server

    def become(self, declared: Declared, *, server: McpServer) -> None:
        """Replace the declaration and the server connection; the server's name stays the same."""
        self.declared = declared
        self._server = server
        self._spec = _spec(self._spec.name, declared, server=server.server.name)

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        shown = [f"{name}: {_shown(value)}" for name, value in arguments.items()]
        about = ", ".join(shown[:TITLE_KEYS])
        return f"{self._server.server.name}/{self.declared.name} {about}".strip()

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Pass the arguments on as they are: the server knows its own schema best."""
        return CheckedCall(arguments=arguments, run=partial(self._run, arguments))

    async def _run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call the tool on its server; return an error result when the server fails or its declaration has changed."""
        declared, server = self.declared, self._server
        try:
            _ = await server.ready()
            if not self.is_offered or self.declared.hash != declared.hash:
                changed = f"{self._spec.name} was not run: what the server says of it has changed since it was approved."
                return error_result(
                    f"{changed} The user is asked when the next run begins; go on without it.",
                    happened=f"{changed} You are asked when the next run begins.",
                )
            answer = await server.call(
                declared.name,
                arguments,
                call=context.call,
                progress=_ProgressPrinter(context.output),
            )
        except ServerFailed as error:
            return error_result(f"{self._spec.name}: {error}", details=self._details())
        make = partial(
            result_of,
            answer,
            server=server.server.name,
            tool=declared.name,
            pictures=self._pictures,
        )
        return await to_thread.run_sync(make)

    def _details(self) -> JsonObject:
        return {"server": self._server.server.name, "tool": self.declared.name}


class _ProgressPrinter:
    """Shows progress, but not more of it than anyone can read."""

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        self._printed_at_s = -math.inf

    def __call__(self, progress: McpProgress) -> None:
        now_s = current_time()
        if now_s < self._printed_at_s + TELL_S:
            return
        self._printed_at_s = now_s
        of = "" if progress.total is None else f"/{progress.total:g}"
        message = one_line(progress.message or "")[:SHOWN_CHARS]
        self._output(f"{progress.done:g}{of} {message}".rstrip() + "\n")


def _spec(name: str, declared: Declared, *, server: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=declared.description,
        parameters=declared.parameters,
        kind="read" if declared.is_read_only else "other",
        mcp=f"{server}/{declared.name}",
    )


def _shown(value: object) -> str:
    return str(value)[:SHOWN_CHARS] if isinstance(value, str | int | float) else "…"
