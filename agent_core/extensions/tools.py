"""Makes a tool of a function of an extension; it is checked, asked about and run like every other tool."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, cast, get_type_hints

from agent_core.extensions.calls.threads import call_either
from agent_core.extensions.context import ToolCallContext
from agent_core.extensions.lifetime import inside
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.tools import ToolContext, ToolResult, ToolSpec, text_result
from agent_core.tools.arguments import ToolArguments, dumped, schema_of, validated
from agent_core.workspace.permissions.call_permission import ToolKind

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tool names that all providers accept."""
ToolFunction = Callable[..., object]
"""Gets the arguments and a `ToolCallContext`; gives words or a `ToolResult`, or what is awaited for them."""
Function = TypeVar("Function", bound=ToolFunction)


class ExtensionTool(Value, frozen=True, kw_only=True):
    """A tool of an extension."""

    spec: ToolSpec
    extension: str
    function: ToolFunction
    arguments: type[ToolArguments] | None
    """None: its arguments are what its JSON Schema says, and come as they are."""
    titled: Callable[[JsonObject], str]
    context: Callable[[ToolContext], ToolCallContext]

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        return self.titled(arguments)

    def check(self, arguments: JsonObject) -> JsonObject:
        """Coerce and check arguments."""
        if self.arguments is None:
            return arguments
        return dumped(validated(self.spec.name, self.arguments, arguments))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Do it."""
        given: object = arguments
        if self.arguments is not None:
            given = validated(self.spec.name, self.arguments, arguments)
        with inside(f"the tool {self.spec.name}"):
            return self._result(await call_either(self.function, given, self.context(context)))

    def _result(self, given: object) -> ToolResult:
        match given:
            case ToolResult():
                return given
            case str():
                return text_result(given)
            case None:
                return text_result("Done.")
            case _:
                message = (
                    f"the tool {self.spec.name} of extension {self.extension} gave a {type(given).__name__}; "
                    "it must give words or a ToolResult"
                )
                raise ExtensionBroken(message)


def make_tool(
    function: ToolFunction,
    *,
    extension: str,
    context: Callable[[ToolContext], ToolCallContext],
    name: str | None,
    description: str | None,
    arguments: type[ToolArguments] | None,
    parameters: JsonObject | None,
    kind: ToolKind,
    parallel_safe: bool,
    snippet: str,
    guidelines: Sequence[str],
    title: Callable[[JsonObject], str] | None,
) -> ExtensionTool:
    """Make it.

    Raises:
        ExtensionBroken: It has no name or description that a model could use, or arguments that nobody can check.
    """
    named = name or function.__name__
    if not NAME.fullmatch(named):
        message = f"a tool cannot be called {named!r}; take 1 to 64 letters, digits, _ and -"
        raise ExtensionBroken(message)
    described = description or inspect.getdoc(function)
    if not described:
        message = f"the tool {named} has no description; give one, or write a docstring"
        raise ExtensionBroken(message)
    model = arguments if parameters is not None else arguments or _annotated(function, named)
    return ExtensionTool(
        spec=ToolSpec(
            name=named,
            description=described,
            parameters=schema_of(model) if model is not None else parameters or {"type": "object"},
            kind=kind,
            parallel_safe=parallel_safe,
            snippet=snippet,
            guidelines=tuple(guidelines),
        ),
        extension=extension,
        function=function,
        arguments=model,
        titled=title or (lambda _: named),
        context=context,
    )


def _annotated(function: ToolFunction, name: str) -> type[ToolArguments]:
    """Find the class of a tool's arguments in its own annotations."""
    first = next(iter(inspect.signature(function).parameters), None)
    try:
        found = cast("object", get_type_hints(function).get(first or ""))
    except NameError as error:
        message = f"the annotations of the tool {name} cannot be read: {error}"
        raise ExtensionBroken(message) from error
    if isinstance(found, type) and issubclass(found, ToolArguments):
        return found
    message = (
        f"the tool {name} does not say what it takes: annotate its first parameter with a class of ToolArguments, "
        "or give arguments= or parameters="
    )
    raise ExtensionBroken(message)
