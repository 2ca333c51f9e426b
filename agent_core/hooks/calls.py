"""Calls of hooks: each in isolation and within its time, its answer validated, its failure described.

A coroutine is stepped by hand. A hook that swallows its cancellation, or blocks it with a shield, is abandoned after
a grace period; a blocking function runs in a thread of its own, which is not waited for either.
"""

import asyncio
import contextvars
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from inspect import iscoroutine
from pathlib import Path
from types import FrameType, TracebackType, UnionType, coroutine
from typing import (
    NewType,
    TypeVar,
    Union,  # pyright: ignore[reportDeprecated] - the origin of `X | None` when X is a NewType
    cast,
    get_args,
    get_origin,
)

import anyio

from agent_core.hooks.catalogue import Point
from agent_core.hooks.kinds import GoOn
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value


class HookCall:
    """One call of a hook. Contexts of extensions are made around it; all of it is for the loop's thread."""

    __slots__ = ("_is_over", "_left_s", "_loop", "_on_time", "_pauses", "_since_s", "_timer", "grace_s", "is_out_of_time", "limit_s", "owner", "point")  # fmt: skip

    def __init__(
        self, owner: str, point: str, limit_s: float, *, grace_s: float | None = None
    ) -> None:
        self.owner = owner
        self.point = point
        """The name of the point, as `tool_call`."""
        self.limit_s = limit_s
        self.grace_s = min(GRACE_S, limit_s) if grace_s is None else grace_s
        """How long it may take to end after its cancellation."""
        self.is_out_of_time = False
        """Its time was over before it ended."""
        self._is_over = False
        self._left_s = limit_s
        self._since_s = 0.0
        self._pauses = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._on_time: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the answer is there, or is not waited for any more."""
        return self._is_over

    @property
    def why_over(self) -> str:
        """Return what it means that its time is over."""
        return f"no answer within {self.limit_s:g} s"

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock for waiting that is not the hook's own: for a person's answer, a process, a model.

        May be entered several times at once.
        """
        self._pauses += 1
        if self._pauses == 1:
            self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._go_on()

    def start(self, on_time: Callable[[], None]) -> None:
        """Start the timer; the function is called once when the time is over."""
        self._loop = asyncio.get_running_loop()
        self._on_time = on_time
        self._go_on()

    def give_up(self) -> None:
        """Cancel what waits, as if the time were over."""
        if not self._is_over and self._on_time is not None:
            self._on_time()

    def end(self) -> None:
        """End the call and stop its clock: no caller waits for an answer any more."""
        self._is_over = True
        self._stop()

    def _go_on(self) -> None:
        if self._pauses == 0 and self._loop is not None and not self._is_over:
            self._since_s = self._loop.time()
            self._timer = self._loop.call_later(self._left_s, self._time_is_over)

    def _stop(self) -> None:
        if self._timer is not None and self._loop is not None:
            self._timer.cancel()
            self._timer = None
            self._left_s = max(0.0, self._left_s - (self._loop.time() - self._since_s))

    def _time_is_over(self) -> None:
        self._timer = None
        self.is_out_of_time = True
        if self._on_time is not None:
            self._on_time()


OWN_FOLDER = str(Path(__file__).parent)


class HookFailure(Value, frozen=True, kw_only=True):
    """A hook crashed, took too long or gave what it may not."""

    owner: str
    point: str
    error: str
    exception: BaseException
    stood: str | None = None
    """Where it waited when its time was over."""

    @property
    def stack(self) -> str:
        """Where in the hook's code it happened, as Python writes it."""
        if self.stood is not None:
            return f"{self.stood}{self.error}\n"
        foreign = _foreign(self.exception.__traceback__)
        return "".join(traceback.format_exception(type(self.exception), self.exception, foreign))


def wait_stack(steps: Coroutine[object, None, object]) -> str | None:
    """Return where a coroutine waits, outermost frame first, without Tiller's own frames; None: unknown."""
    lines: list[traceback.FrameSummary] = []
    inner: object = steps
    while iscoroutine(inner):
        frame: FrameType | None = inner.cr_frame
        if frame is not None and not _is_ours(frame):
            lines.append(_line(frame))
        inner = inner.cr_await
    return "".join(traceback.StackSummary.from_list(lines).format()) if lines else None


def _line(frame: FrameType) -> traceback.FrameSummary:
    code = frame.f_code
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name)


def _foreign(where: TracebackType | None) -> TracebackType | None:
    """Leave out our own part of a traceback: the way to the hook says nothing about it."""
    while where is not None and _is_ours(where.tb_frame):
        where = where.tb_next
    return where


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(OWN_FOLDER)


GRACE_S = 1.0
"""How long a hook may take to end after its time was over, or as long as its limit when that is shorter."""
MOST_THREADS_LEFT = 4
"""So many calls of one owner may go on after nobody waits for them; then it is not asked in threads any more."""
MOST_CLOSINGS = 8
"""So often a coroutine that ignores its end is asked to end."""

T = TypeVar("T")


class OutOfTime(TimeoutError):
    """A hook gave no answer within its time."""

    def __init__(self, why: str, *, stood: str | None = None) -> None:
        super().__init__(why)
        self.stood = stood
        """Where the hook waited when its time was over."""


class HookAbandoned(OutOfTime):
    """It did not even end when it was cancelled, and was left where it stood."""


class Threads:
    """Runs blocking functions, each in a thread of its own that holds up nothing when it never ends."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        """By owner, the calls that go on although nobody waits for them."""

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run a function in a thread; cancelled, the thread is left to itself.

        Raises:
            OutOfTime: Too many calls of the owner never came back.
        """
        if self._left[owner] >= MOST_THREADS_LEFT:
            message = f"{self._left[owner]} earlier calls of {owner} are still running; it is asked again when one ends"
            raise OutOfTime(message)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if done.done():
                self._left[owner] -= 1
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # pyright: ignore[reportArgumentType] - there is one without an error

        def body() -> None:
            result, failure = None, None
            try:
                result = around.run(work)
            except BaseException as error:  # noqa: BLE001 - goes to whoever waits
                failure = (
                    RuntimeError(f"gave {error!r}") if isinstance(error, StopIteration) else error
                )
            try:
                loop.call_soon_threadsafe(settle, result, failure)
            except RuntimeError:
                # The loop is gone, and whoever waited with it.
                return

        around = contextvars.copy_context()
        # Not one of the pool's: those are waited for when the process ends.
        threading.Thread(target=body, name=f"hook of {owner}", daemon=True).start()
        try:
            return await done
        finally:
            _ = done.cancel()
            if done.cancelled():
                self._left[owner] += 1


async def apart(work: Coroutine[object, None, None], *, stop: Callable[[], None]) -> None:
    """Wait for work in a separate task. On cancellation, call `stop` and still wait for the work to end.

    Args:
        work: The work. It ends soon after `stop` is called, and raises nothing.
        stop: Asks the work to end.
    """
    # No group's task: code of others may leave the state of its task such that no group could end it.
    loop = asyncio.get_running_loop()
    task, over = loop.create_task(work), loop.create_future()
    task.add_done_callback(lambda _: over.done() or over.set_result(None))
    try:
        # Not for the task itself: what cancels us must not cancel it wherever it stands.
        await over
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            _ = await asyncio.wait([task])
        raise


async def within_limit(steps: Coroutine[object, None, T], call: HookCall) -> T:
    """Return what a coroutine gives, within the time of a call; to be used in a task of its own.

    Raises:
        OutOfTime: Its time was over.
        TornOff: It did not end when it was cancelled. The task may hold what it left behind, and should end.
    """
    patience = HookWatchdog()
    try:
        with patience.scope:
            answer = await patience.wait(steps, call)
            if not patience.scope.cancel_called:
                return answer
    except BaseException:
        # A scope that the coroutine never left hides what was raised inside of it.
        if patience.torn is not None:
            raise patience.torn from None
        raise
    raise OutOfTime(call.why_over, stood=patience.stood)


class HookWatchdog:
    """Watches over the coroutines that one task waits for, one after the other, until the first that takes too long."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Around all of them; cancelled when the time of one is over."""
        self.stood: str | None = None
        """Where that one waited."""
        self.torn: HookAbandoned | None = None
        """Set when it did not end and was left."""
        self.is_over = False
        self._call: HookCall | None = None
        self._steps: Coroutine[object, None, object] | None = None
        self._forcing: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None

    @coroutine
    def wait(self, steps: Coroutine[object, None, T], call: HookCall) -> Generator[object, None, T]:
        """Step a coroutine until it ends or the patience does."""
        try:
            # Most never wait, and need no clock.
            waits_for = steps.send(None)  # decision 0040
        except StopIteration as end:
            call.end()
            return end.value  # pyright: ignore[reportAny] - typed as `T` by the coroutine
        self._begin(steps, call)
        try:
            while True:
                try:
                    yield waits_for
                except GeneratorExit:
                    raise
                except BaseException as error:
                    if self.is_over:
                        why = f"{call.why_over}, and it did not let itself be cancelled"
                        self.torn = HookAbandoned(why, stood=self.stood)
                        raise self.torn from error
                    self._cancelled()
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(None)
        except StopIteration as end:
            return end.value  # pyright: ignore[reportAny] - typed as `T` by the coroutine
        finally:
            self._end(call)
            _close(steps)

    def _begin(self, steps: Coroutine[object, None, object], call: HookCall) -> None:
        self._task = asyncio.current_task()
        self._steps, self._call = steps, call
        call.start(self._time_is_over)

    def _end(self, call: HookCall) -> None:
        call.end()
        if self._forcing is not None:
            self._forcing.cancel()

    def _cancelled(self) -> None:
        """Leave only the grace, from the first cancellation on."""
        if self._forcing is None and self._call is not None:
            self._forcing = asyncio.get_running_loop().call_later(self._call.grace_s, self._force)

    def _time_is_over(self) -> None:
        if self._steps is not None:
            self.stood = wait_stack(self._steps)
        self.scope.cancel()
        # Told by ourselves as well: a shield keeps the cancellation away from the coroutine.
        self._cancelled()

    def _force(self) -> None:
        self.is_over = True
        if self._task is not None:
            _ = self._task.cancel()


def _close(steps: Coroutine[object, None, object]) -> None:
    for _ in range(MOST_CLOSINGS):
        try:
            steps.close()
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001 - it is left anyway
            return
        return


DEEPEST = 200
"""JSON that is nested deeper than this is refused."""


def fault(outcome: object, point: Point) -> str | None:
    """Return what is wrong with an answer; None: it is sound."""
    if outcome is None and GoOn in point.outcomes:
        return f"gave no answer to {point.name}: return GoOn() where nothing is to change"
    if not isinstance(outcome, point.outcomes):
        return f"gave {outcome!r:.200}, which is no outcome of {point.name}"
    for field in fields(outcome):
        value: object = getattr(outcome, field.name)  # pyright: ignore[reportAny] - foreign
        if not _fits(value, field.type):
            what = f"{type(outcome).__name__}({field.name}={value!r:.200})"
            return f"gave {what}, and {field.name} must be {_said(field.type)}"
    return None


UNIONS = (UnionType, Union)  # pyright: ignore[reportDeprecated] - as at its import


def _fits(value: object, kind: object) -> bool:
    while isinstance(kind, NewType):
        kind = cast("object", kind.__supertype__)
    if kind in (JsonValue, JsonObject):
        return _is_json(value, DEEPEST) and (kind == JsonValue or isinstance(value, Mapping))
    if isinstance(kind, type) or kind is None:
        return value is None if kind is None else isinstance(value, kind)
    inner: tuple[object, ...] = get_args(kind)
    match get_origin(kind):
        case origin if origin in UNIONS:
            return any(_fits(value, one) for one in inner)
        case origin if origin is tuple:
            return _is_a(value, tuple) and all(_fits(one, inner[0]) for one in _items(value))
        case origin if origin is Mapping:
            return _is_a(value, Mapping) and all(
                _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in _pairs(value)
            )
        case _:
            return callable(value)


def _is_json(value: object, depth: int) -> bool:
    if value is None or isinstance(value, str | int | float):
        return True
    if depth == 0:
        return False
    if _is_a(value, Mapping):
        return all(isinstance(key, str) and _is_json(one, depth - 1) for key, one in _pairs(value))
    return _is_a(value, list, tuple) and all(_is_json(one, depth - 1) for one in _items(value))


def _is_a(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds)


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value)  # foreign: of what it is made is what is being found out


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    return cast("Mapping[object, object]", value).items()  # the same


def _said(kind: object) -> str:
    if kind in (JsonValue, JsonObject):
        return "a JSON object" if kind == JsonObject else "JSON"
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    return str(kind).replace("agent_core.messages.values.", "").replace("collections.abc.", "")
