"""API of an extension for registrations and actions: the only argument of `def extension(api)`."""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast, get_type_hints, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.extensions.context import Context, ToolCallContext
from agent_core.extensions.ports import Lifetime, inside
from agent_core.extensions.registry import (
    AnyInput,
    FlagValue,
    HandlerFunction,
    OwnCommand,
    Registrar,
    Registrations,
)
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.ui import View, view_json
from agent_core.hooks import Hook
from agent_core.hooks.calls import HookCall, Threads
from agent_core.hooks.catalogue import POINTS, Point
from agent_core.hooks.runner import AnyHook
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.json import is_object
from agent_core.kernel.values import Value
from agent_core.resources.offers import Completion
from agent_core.tools import CheckedCall, Tool, ToolContext, ToolResult, ToolSpec, text_result
from agent_core.tools.arguments import ToolArguments, dumped, schema_of, validated
from agent_core.workspace.permissions.call_permission import ToolKind

BusListener = Callable[[object], object]
"""Receives the data of an event; may return an awaitable."""
ListenerErrorHandler = Callable[[str, str, BaseException], None]
"""Told of a listener that failed: extension, channel, error."""


class _BusSubscription(Value, frozen=True, eq=False):
    extension: str
    life: Lifetime
    channel: str
    listener: BusListener


class EventBus(Struct, kw_only=True):
    """Hands on what is told; a listener that fails costs only itself."""

    failed: ListenerErrorHandler
    later: Callable[[Awaitable[object], str, str], None]
    """Awaits what a listener gave, in a task that belongs to the session."""
    _heard: list[_BusSubscription] = msgspec.field(default_factory=list[_BusSubscription])

    def on(
        self, channel: str, listener: BusListener, *, extension: str, life: Lifetime
    ) -> Callable[[], None]:
        """Listen for as long as a life lasts; gives what ends it before."""
        heard = _BusSubscription(extension, life, channel, listener)
        self._heard.append(heard)

        def stop() -> None:
            self._heard = [one for one in self._heard if one is not heard]

        return stop

    def emit(self, channel: str, data: object = None) -> None:
        """Publish data to all listeners of a channel, in subscription order, the publisher's own included."""
        self._heard = [one for one in self._heard if not one.life.is_over]
        for heard in tuple(self._heard):
            if heard.channel != channel:
                continue
            try:
                given = heard.listener(data)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
                self.failed(heard.extension, channel, error)
                continue
            if inspect.isawaitable(given):
                self.later(given, heard.extension, channel)


class OwnBus(Value, frozen=True):
    """The bus as one extension sees it."""

    _bus: EventBus
    _extension: str
    _life: Lifetime

    def on(self, channel: str, listener: BusListener) -> Callable[[], None]:
        """Listen on a channel; gives what ends it. It ends by itself when the extension is loaded anew."""
        self._life.check()
        return self._bus.on(channel, listener, extension=self._extension, life=self._life)

    def emit(self, channel: str, data: object = None) -> None:
        """Publish data to all listeners of a channel."""
        self._life.check()
        self._bus.emit(channel, data)


NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tool names that all providers accept."""
CALL_VIEW: Final = "call_view"
RESULT_VIEW: Final = "view"
"""Keys of the details of a result that hold its views, with `call_view`."""
TOO_LONG: Final = "The view failed: it took too long."
ToolFunction = Callable[..., object]
"""Gets the arguments and a `ToolCallContext`; gives words or a `ToolResult`, or what is awaited for them."""
Function = TypeVar("Function", bound=ToolFunction)
T = TypeVar("T")


class ToolViews(Value, frozen=True, kw_only=True):
    """Views of the calls of a tool, which clients draw in place of its arguments and its result."""

    call: Callable[[JsonObject], View | str] | None = None
    result: Callable[[ToolResult], View | str] | None = None


def _view(draw: Callable[[T], View | str], given: Callable[[], T]) -> JsonObject:
    try:
        return view_json(draw(given()))
    except Exception as error:  # noqa: BLE001 - the fence around foreign code: the call was made, so it keeps its result
        from agent_core.extensions.source_places import place_beside  # noqa: PLC0415 - few extensions fail

        return view_json(
            f"The view failed: {type(error).__name__}: {error}{place_beside(error, draw)}"
        )


class _CallView:
    """The view of one call, drawn once: while it runs, and with its result."""

    def __init__(self, draw: Callable[[], Awaitable[JsonObject]]) -> None:
        self._draw = draw
        self._made: JsonObject | None = None

    async def details(self) -> JsonObject:
        """Return the details of the call that hold it."""
        if self._made is None:
            # Kept if this is cancelled because it takes too long: it is not drawn again.
            self._made = {CALL_VIEW: view_json(TOO_LONG)}
            self._made = {CALL_VIEW: await self._draw()}
        return self._made


def _with_views(result: ToolResult, views: JsonObject) -> ToolResult:
    """Add views to the details of a result.

    Raises:
        ExtensionBroken: The details are no JSON object, which could hold views.
    """
    if not views:
        return result
    if result.details is not None and not is_object(result.details):
        message = "a tool with views gave details that are no JSON object; give an object or None"
        raise ExtensionBroken(message)
    return replace(result, details={**(result.details or {}), **views})


class ExtensionTool(Value, frozen=True, kw_only=True):
    """A tool of an extension."""

    spec: ToolSpec
    extension: str
    function: ToolFunction
    arguments: type[ToolArguments] | None
    """None: its arguments are what its JSON Schema says, and come as they are."""
    titled: Callable[[JsonObject], str]
    context: Callable[[ToolContext], ToolCallContext]
    views: ToolViews
    threads: Threads
    """Runs a plain function. Threads that never end do not keep the process from ending."""

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        return self.titled(arguments)

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Coerce and check the arguments of a call."""
        if self.arguments is None:
            return self._checked(arguments, arguments, lambda: arguments)
        typed = validated(self.spec.name, self.arguments, arguments)
        return self._checked(typed, dumped(typed), partial(dumped, typed, with_defaults=True))

    def _checked(
        self, given: object, arguments: JsonObject, whole: Callable[[], JsonObject]
    ) -> CheckedCall:
        draw = self.views.call
        if draw is None:
            return CheckedCall(arguments=arguments, run=partial(self._run, given, None))
        shown = _CallView(partial(self._drawn, draw, whole))
        run = partial(self._run, given, shown)
        return CheckedCall(arguments=arguments, run=run, details=shown.details)

    async def _run(
        self, given: object, shown: _CallView | None, context: ToolContext
    ) -> ToolResult:
        result = await self._called(given, context)
        views: JsonObject = {} if shown is None else await shown.details()
        if self.views.result is not None:
            views = {**views, RESULT_VIEW: await self._drawn(self.views.result, lambda: result)}
        return _with_views(result, views)

    async def _drawn(self, draw: Callable[[T], View | str], given: Callable[[], T]) -> JsonObject:
        return await self.threads.run(self.extension, partial(_view, draw, given))

    async def _called(self, given: object, context: ToolContext) -> ToolResult:
        with inside(f"the tool {self.spec.name}"):
            run: Callable[[], object] = partial(self.function, given, self.context(context))
            is_async = inspect.iscoroutinefunction(self.function)
            made = run() if is_async else await self.threads.run(self.extension, run)
            return self._result(await made if inspect.isawaitable(made) else made)

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
    threads: Threads,
    name: str | None,
    description: str | None,
    arguments: type[ToolArguments] | None,
    parameters: JsonObject | None,
    kind: ToolKind,
    parallel_safe: bool,
    snippet: str,
    guidelines: Sequence[str],
    title: Callable[[JsonObject], str] | None,
    label: str,
    views: ToolViews,
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
        titled=title or (lambda _: label or named),
        context=context,
        views=views,
        threads=threads,
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
        self._events = OwnBus(bus, scope.extension, scope.life)
        self._threads = Threads()

    @property
    def events(self) -> OwnBus:
        """Return the bus between the extensions of a session, with `on(channel, listener)` and `emit(channel, data)`."""
        return self._events

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
        label: str = "",
        view_call: Callable[[JsonObject], View | str] | None = None,
        view_result: Callable[[ToolResult], View | str] | None = None,
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
        label: str = "",
        view_call: Callable[[JsonObject], View | str] | None = None,
        view_result: Callable[[ToolResult], View | str] | None = None,
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
            label: Name for people: the description of each call, unless there is a `title`.
            view_call: Returns a view of the checked arguments, with the defaults of those that the model left out. The panel
                draws it as soon as the call runs, other clients when it has ended.
            view_result: Returns a view of the result, in place of its text; also of a failed one. Both run in a thread. The
                details of a result that is drawn are a JSON object, or None.

        Raises:
            ExtensionBroken: The name, the description or the arguments are missing or unusable for a model.
        """

        def take(made_of: Function) -> Function:
            self.add_tool(
                make_tool(
                    made_of,
                    extension=self.name,
                    context=self._tool_context,
                    threads=self._threads,
                    name=name,
                    description=description,
                    arguments=arguments,
                    parameters=parameters,
                    kind=kind,
                    parallel_safe=parallel_safe,
                    snippet=snippet,
                    guidelines=guidelines,
                    title=title,
                    label=label,
                    views=ToolViews(call=view_call, result=view_result),
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
    name: str = getattr(handler, "__name__", where)
    if inspect.iscoroutinefunction(handler):

        async def run_async(event: object, ctx: Context) -> object:
            with inside(where):
                return await (handler(event, ctx) if takes_both else handler(event))  # pyright: ignore[reportAny] - as above

        run_async.__name__ = name
        return run_async

    def run(event: object, ctx: Context) -> object:
        with inside(where):
            return handler(event, ctx) if takes_both else handler(event)  # pyright: ignore[reportAny] - as above

    run.__name__ = name
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
