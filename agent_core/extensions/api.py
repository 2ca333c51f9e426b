"""API of an extension for registrations and actions: the only argument of `def extension(api)`."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from agent_core.extensions.context import Context, ToolCallContext
from agent_core.extensions.event_bus import EventBus, OwnBus
from agent_core.extensions.lifetime import inside
from agent_core.extensions.registry.registrar import HandlerFunction, Registrar
from agent_core.extensions.registry.registrations import (
    AnyInput,
    FlagValue,
    OwnCommand,
    Registrations,
)
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.tools import Function, make_tool
from agent_core.hooks import Hook
from agent_core.hooks.call import HookCall
from agent_core.hooks.catalogue import POINTS, Point
from agent_core.hooks.table import AnyHook
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.resources.slash_commands import Completion
from agent_core.tools import Tool, ToolContext
from agent_core.tools.arguments import ToolArguments
from agent_core.workspace.permissions.call_permission import ToolKind

AnyHandler = Callable[..., Any]  # pyright: ignore[reportExplicitAny] - code of others gives what it likes
ArgumentCompleter = Callable[[str], Sequence[Completion | str] | None]


class ExtensionApi(Registrar):
    """Registrations and actions of an extension. Registrations after loading take effect as well."""

    def __init__(
        self,
        scope: ExtensionScope,
        registered: Registrations,
        *,
        bus: EventBus,
        flags: Callable[[str], FlagValue | None],
        changed: Callable[[], None],
    ) -> None:
        """Create the registrar of one extension, as `Registrar` does, with the bus of the session."""
        super().__init__(scope, registered, flags=flags, changed=changed)
        self.events = OwnBus(bus, scope.extension, scope.life)
        """Event bus between extensions."""

    def on(self, event: AnyInput | str) -> Callable[[HandlerFunction], HandlerFunction]:
        """Have a function asked at a point, after those that are there.

        It is called with the event and a `Context`, or with the event alone. `async` functions are cancelled when
        their time is over, plain ones run in a thread. Giving None means that there is nothing to change, but at
        `tool_call` and `user_bash`: there only `GoOn()` is a yes, so that a forgotten `return` is none.

        Args:
            event: The class of the event, `ToolCalled` for one, or its name, `tool_call`.

        Raises:
            ExtensionBroken: There is no such event.
        """
        point = _point(event)

        def take(handler: HandlerFunction) -> HandlerFunction:
            self._scope.life.check()
            hook: AnyHook = Hook(self.name, _run(handler, point), context=self._context)
            self._registered.hooks.append((point.input, hook))
            self._changed()
            return handler

        return take

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        arguments: type[ToolArguments] | None = None,
        parameters: JsonObject | None = None,
        kind: ToolKind = "other",
        parallel_safe: bool = False,
        snippet: str = "",
        guidelines: Sequence[str] = (),
        title: Callable[[JsonObject], str] | None = None,
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        arguments: type[ToolArguments] | None = None,
        parameters: JsonObject | None = None,
        kind: ToolKind = "other",
        parallel_safe: bool = False,
        snippet: str = "",
        guidelines: Sequence[str] = (),
        title: Callable[[JsonObject], str] | None = None,
    ) -> Function | Callable[[Function], Function]:
        """Register a tool from a function that is called with its arguments and a `ToolCallContext`.

        The function returns a text or a `ToolResult`. A plain function runs in a thread.

        Args:
            function: The function; None: return a decorator.
            name: Name of the tool; None: the function's.
            description: For the model; None: the function's docstring.
            arguments: Class of the arguments; None: the annotation of the function's first parameter.
            parameters: JSON Schema in place of a class; the arguments are then passed on unconverted.
            kind: Kind for the permission policy: a `read` tool only reads, an `other` tool needs permission.
            parallel_safe: Whether it may run in parallel with other such calls.
            snippet: One line for the system prompt.
            guidelines: Rules for the system prompt.
            title: Returns a short description of a call; must accept any arguments.

        Raises:
            ExtensionBroken: The name, the description or the arguments are missing or unusable for a model.
        """

        def take(made_of: Function) -> Function:
            self.add_tool(
                make_tool(
                    made_of,
                    extension=self.name,
                    context=self._tool_context,
                    name=name,
                    description=description,
                    arguments=arguments,
                    parameters=parameters,
                    kind=kind,
                    parallel_safe=parallel_safe,
                    snippet=snippet,
                    guidelines=guidelines,
                    title=title,
                )
            )
            return made_of

        return take if function is None else take(function)

    def add_tool(self, tool: Tool) -> None:
        """Bring a tool that is one already."""
        self._scope.life.check()
        self._registered.tools[tool.spec.name] = tool
        self._changed()

    def command(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        argument_hint: str = "",
        complete: ArgumentCompleter | None = None,
    ) -> Callable[[HandlerFunction], HandlerFunction]:
        """Register a command from a function that is called with the text after `/name` and a `CommandContext`.

        Args:
            name: Without the slash; None: the function's, with `-` for `_`.
            description: For people; None: the first line of the function's docstring.
            argument_hint: Description of the arguments that may follow the name.
            complete: Returns completions of the arguments; must be fast and must not block.
        """

        def take(handler: HandlerFunction) -> HandlerFunction:
            self._scope.life.check()
            named = name or handler.__name__.replace("_", "-")
            if not named or any(sign.isspace() or sign == "/" for sign in named):
                message = f"a command cannot be called {named!r}: no blanks and no slash"
                raise ExtensionBroken(message)
            self._registered.commands[named] = OwnCommand(
                name=named,
                extension=self.name,
                description=description or _first_line(handler),
                argument_hint=argument_hint,
                run=handler,
                complete=complete,
            )
            self._changed()
            return handler

        return take

    def _context(self, call: HookCall) -> Context:
        return Context(self._scope, call.paused)

    def _tool_context(self, call: ToolContext) -> ToolCallContext:
        return ToolCallContext(self._scope, call)


def _point(event: AnyInput | str) -> Point:
    for input_type, point in POINTS.items():
        if event is input_type or event == point.name:
            return point
    names = ", ".join(point.name for point in POINTS.values())
    message = f"there is no event {event!r}; there are {names}"
    raise ExtensionBroken(message)


def _run(handler: AnyHandler, point: Point) -> AnyHandler:
    """Return a handler of the same colour that takes both arguments and says where it is."""
    takes_both = _takes_context(handler)
    where = f"a hook of {point.name}"
    if inspect.iscoroutinefunction(handler):

        async def run_async(event: object, ctx: Context) -> object:
            with inside(where):
                return await (handler(event, ctx) if takes_both else handler(event))  # pyright: ignore[reportAny] - as above

        return run_async

    def run(event: object, ctx: Context) -> object:
        with inside(where):
            return handler(event, ctx) if takes_both else handler(event)  # pyright: ignore[reportAny] - as above

    return run


def _takes_context(handler: AnyHandler) -> bool:
    try:
        inspect.signature(handler).bind(object(), object())
    except TypeError:
        return False
    except ValueError:
        # Some built-in functions do not say what they take.
        return True
    return True


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
