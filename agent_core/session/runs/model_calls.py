"""The recorder of a session's model calls: reserves what a call may cost, asks, and writes what it has cost."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events.values import CallPurpose
from agent_core.kernel import Clock, RunId, SessionId, uuid7
from agent_core.kernel.errors import BudgetExceeded
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantContent,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Cost,
    CustomMessage,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)
from agent_core.providers.model import (
    Model,
    ModelInfo,
    ModelRequest,
    Prices,
    StreamEvent,
    StreamFinished,
    UsageUpdate,
)
from agent_core.session.context import LedgerAccess, SessionServices
from agent_core.session.history.recorder import Recorder
from agent_core.session.runs.usage import BudgetPolicy, RunBudgets
from agent_core.storage.ledger import (
    CallLedger,
    CallRow,
    CallStatus,
    SpendingLimit,
    day_of,
    picodollars,
)
from agent_core.storage.port import SessionAttachments

if TYPE_CHECKING:
    from agent_core.session.attachments import AttachmentReader

AttachmentsOf = Callable[[], SessionAttachments | None]

SETTLE_S: Final = 2.0
"""How long the end of a call waits for its row; a row that is late is written all the same."""
ASCII_CHARS: Final = 3
"""Characters of a token of plain ASCII text at least, on average; of other text one."""
IMAGE_TOKENS: Final = 1_600
MESSAGE_TOKENS: Final = 8
PER_MILLION: Final = 1_000_000
LONG_WRITE: Final = 2
"""Writing to a cache that is kept for an hour costs this many times the plain input."""
BESIDE_RUNS: Final = frozenset[CallPurpose]({"title", "completion", "memory"})
"""Purposes of calls that belong to no run."""


class CallAccount(Value, frozen=True, kw_only=True):
    """Whom the calls of a session are counted for."""

    session: SessionId
    root: SessionId
    folder: str
    purpose: CallPurpose
    """Of the conversation itself."""


class OngoingCall(Struct):
    """A call that goes on."""

    row: CallRow
    begun_s: float
    usage: Usage = msgspec.field(default_factory=Usage)
    first_s: float | None = None
    is_settled: bool = False


class SessionCalls:
    """Recorder of the calls of one session. A ledger that fails never fails a call; a budget may refuse one."""

    def __init__(
        self,
        account: CallAccount,
        *,
        ledger: CallLedger | None,
        budget: RunBudgets | None,
        allowance: BudgetPolicy,
        current_run: Callable[[], RunId | None],
        new_id: Callable[[], str],
        clock: Clock,
        attachments: AttachmentsOf = lambda: None,
    ) -> None:
        """Create it.

        Args:
            account: Ids and folder of the rows.
            ledger: Where rows are written; None: nowhere.
            budget: Budget of the current run; None: the calls belong to no run.
            allowance: Limits of a day.
            current_run: Returns the run that goes on.
            new_id: Makes ids of calls, which grow with time.
            clock: Time.
            attachments: Returns where the images of messages are stored; None: messages hold them.
        """
        self._account = account
        self._ledger = ledger
        self._budget = budget
        self._allowance = allowance
        self._current_run = current_run
        self._new_id = new_id
        self._clock = clock
        self._images = RequestImages(attachments)
        self._size = ContextSize()
        self._versions: dict[str, tuple[Prices, str]] = {}

    @asynccontextmanager
    async def stream(
        self, model: Model, request: ModelRequest, /
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask the model and record the call.

        Raises:
            BudgetExceeded: A budget does not allow the call; nothing was sent.
            ProviderError: As `Model.stream`.
        """
        request = await self._images.filled(request, model.facts)
        call = await self._begin(model.facts, request)
        status: CallStatus = "cancelled"
        try:
            async with (
                model.stream(request) as parts,
                aclosing(self._watched(parts, call, request)) as watched,
            ):
                yield watched
        except Exception:
            status = "failed"
            raise
        finally:
            self._release(call.row)
            if not call.is_settled:
                with anyio.move_on_after(SETTLE_S, shield=True):
                    await self._settle(call, status)

    async def _begin(self, facts: ModelInfo, request: ModelRequest) -> OngoingCall:
        input_tokens = self._size.of(request)
        output_tokens = request.max_tokens or facts.max_tokens
        reserved = (
            None
            if facts.prices is None
            else worst_cost(
                facts.prices, input_tokens, output_tokens, is_long=request.cache == "long"
            )
        )
        run = None if request.purpose in BESIDE_RUNS else request.run or self._current_run()
        row = self._row(facts, request, run=run, reserved=reserved)
        budget = None if run is None else self._budget
        if budget is not None:
            cost = None if reserved is None else Cost(output=reserved / 10**12)
            usage = Usage(input=input_tokens, output=output_tokens, cost=cost)
            while (why := budget.reserve(row.id, usage)) is not None:
                if request.purpose == "extension" or not await budget.wait_for_release():
                    raise BudgetExceeded(why)
        call = OngoingCall(row, self._clock.monotonic_s())
        if self._ledger is None:
            return call
        try:
            await self._open(self._ledger, facts, row)
        except BaseException:
            self._release(row)
            raise
        return call

    def _release(self, row: CallRow) -> None:
        if self._budget is not None:
            self._budget.release(row.id)

    async def _open(self, ledger: CallLedger, facts: ModelInfo, row: CallRow) -> None:
        limits = self._limits_of(row)
        if not limits:
            ledger.reserve(row)
            return
        if row.reserved is None:
            message = (
                f"the price of {facts.ref} is not known, so {limits[0].setting} cannot be kept; give its price in "
                "models.json, choose another model, or take the budget away"
            )
            raise BudgetExceeded(message)
        if why := await ledger.reserve_within(row, limits):
            raise BudgetExceeded(why)

    def _limits_of(self, row: CallRow) -> Sequence[SpendingLimit]:
        limits = self._allowance
        found: list[SpendingLimit] = []
        if limits.day_usd is not None:
            found.append(SpendingLimit(setting="budgets.dayUsd", usd=limits.day_usd, day=row.day))
        if limits.folder_day_usd is not None:
            found.append(
                SpendingLimit(
                    setting="budgets.folderDayUsd",
                    usd=limits.folder_day_usd,
                    day=row.day,
                    folder=row.folder,
                )
            )
        return found

    def _row(
        self, facts: ModelInfo, request: ModelRequest, *, run: RunId | None, reserved: int | None
    ) -> CallRow:
        now_ms = self._clock.now_ms()
        account = self._account
        purpose = account.purpose if request.purpose == "main" else request.purpose
        return CallRow(
            id=self._new_id(),
            at_ms=now_ms,
            day=day_of(now_ms),
            session=account.session,
            root=account.root,
            run=run,
            turn=request.turn,
            folder=account.folder,
            purpose=purpose,
            provider=facts.provider,
            model=facts.id,
            price=None if facts.prices is None else self._version(facts.ref, facts.prices),
            reserved=reserved,
        )

    def _version(self, ref: str, prices: Prices) -> str:
        latest = self._versions.get(ref)
        if latest is None or latest[0] is not prices:
            latest = (prices, price_version(prices))
            self._versions[ref] = latest
        return latest[1]

    async def _watched(
        self, parts: AsyncGenerator[StreamEvent, None], call: OngoingCall, request: ModelRequest
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the parts; the answer only after the row of its call is written."""
        async for part in parts:
            if call.first_s is None:
                call.first_s = self._clock.monotonic_s()
            match part:
                case UsageUpdate(usage=usage):
                    call.usage = usage
                case StreamFinished(message=message):
                    call.usage = message.usage
                    self._size.answered(request, message.usage)
                    await self._settle(call, "completed")
                case _:
                    pass
            yield part

    async def _settle(self, call: OngoingCall, status: CallStatus) -> None:
        call.is_settled = True
        if self._ledger is None:
            return
        usage, begun_s = call.usage, call.begun_s
        row = replace(
            call.row,
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            reasoning=usage.reasoning,
            cost=_cost(call, status),
            first_ms=None if call.first_s is None else round((call.first_s - begun_s) * 1000),
            total_ms=round((self._clock.monotonic_s() - begun_s) * 1000),
            status=status,
        )
        await self._ledger.settle(row)


def session_calls(
    access: LedgerAccess | None,
    services: SessionServices,
    budgets: RunBudgets,
    allowance: BudgetPolicy,
    *,
    recorder: Recorder,
) -> SessionCalls:
    """Return the recorder of a session; without access to the ledger it only keeps the budgets."""
    parent, snapshot = services.parent, services.publisher.snapshot
    account = CallAccount(
        session=services.session,
        root=services.session if parent is None else parent.session,
        folder="" if access is None else access.folder,
        purpose="main" if access is None else access.purpose,
    )
    return SessionCalls(
        account,
        ledger=None if access is None else access.open(),
        budget=budgets,
        allowance=allowance,
        current_run=lambda: snapshot.activity.run,
        new_id=services.new_id,
        clock=services.clock,
        attachments=lambda: recorder.attachments,
    )


def calls_for_memory(
    ledger: CallLedger, *, folder: str, allowance: BudgetPolicy, clock: Clock
) -> SessionCalls:
    """Return the recorder of the calls that consolidate the memory of a project; they belong to no session."""
    session = SessionId("memory")
    return SessionCalls(
        CallAccount(session=session, root=session, folder=folder, purpose="memory"),
        ledger=ledger,
        budget=None,
        allowance=allowance,
        current_run=lambda: None,
        new_id=lambda: uuid7(clock.now_ms()),
        clock=clock,
    )


def _cost(call: OngoingCall, status: CallStatus) -> int | None:
    """Return what a call has cost, in picodollars; None: unknown, which is not the same as nothing."""
    usage = call.usage
    counted = None if usage.cost is None else picodollars(usage.cost.total)
    if usage.total or counted:
        return counted
    # Nothing was counted: nothing is owed for a refused request or to a model that is free.
    is_refused = status == "failed" and call.first_s is None
    return 0 if is_refused or call.row.reserved == 0 else None


def price_version(prices: Prices) -> str:
    """Return a short digest of a price list: rows of one version were counted at the same prices."""
    return blake2b(msgspec.json.encode(prices), digest_size=6).hexdigest()


def worst_cost(prices: Prices, input_tokens: int, output_tokens: int, *, is_long: bool) -> int:
    """Return the most that a call can cost at list prices, in picodollars."""
    lists = [prices, *(tier.prices for tier in prices.tiers if input_tokens > tier.input_above)]
    return max(_worst(one, input_tokens, output_tokens, is_long=is_long) for one in lists)


def _worst(prices: Prices, input_tokens: int, output_tokens: int, *, is_long: bool) -> int:
    rate = Decimal(str(max(prices.input, prices.cache_write)))
    if is_long and prices.cache_write:
        rate = max(rate, LONG_WRITE * Decimal(str(prices.input)))
    dollars = (input_tokens * rate + output_tokens * Decimal(str(prices.output))) / PER_MILLION
    return picodollars(dollars)


class RequestImages:
    """The stored images and files of requests. The search for them begins where it ended in the request before."""

    def __init__(self, attachments: AttachmentsOf) -> None:
        self._attachments = attachments
        self._reader: AttachmentReader | None = None
        self._last: Message | None = None
        self._without = 0
        """Number of messages at the beginning, up to `_last`, that have none."""

    async def filled(self, request: ModelRequest, facts: ModelInfo) -> ModelRequest:
        """Return a request with the bytes of the stored images and files that the model is sent."""
        messages, first = request.messages, self._without
        if len(messages) < first or (first and messages[first - 1] is not self._last):
            first = 0
        if not any(map(_has_stored_image, messages[first:])):
            if messages:
                self._last, self._without = messages[-1], len(messages)
            return request
        attachments = self._attachments()
        if attachments is None:
            return request
        if self._reader is None:
            from agent_core.session.attachments import AttachmentReader  # noqa: PLC0415 - at first use

            self._reader = AttachmentReader(attachments)
        return replace(request, messages=await self._reader.filled(messages, facts))


def _has_stored_image(message: Message) -> bool:
    return isinstance(message, UserMessage | ToolResultMessage | CustomMessage) and any(
        isinstance(part, Image | File) and part.blob for part in message.content
    )


class ContextSize:
    """Estimator of the input of the next request: the last count of the provider, plus an estimate of the messages since."""

    def __init__(self) -> None:
        self._system = ""
        self._messages = 0
        self._tokens = 0

    def of(self, request: ModelRequest) -> int:
        """Return the tokens of a request, rather too many than too few."""
        counted = self._messages
        if counted and len(request.messages) > counted and request.system == self._system:
            return self._tokens + sum(map(message_tokens, request.messages[counted:]))
        tools = sum(text_tokens(repr(tool.parameters)) for tool in request.tools)
        return text_tokens(request.system) + tools + sum(map(message_tokens, request.messages))

    def answered(self, request: ModelRequest, usage: Usage) -> None:
        """Remember what the provider counted for a request and its answer."""
        if request.purpose == "main" and usage.total:
            self._system, self._messages = request.system, len(request.messages)
            self._tokens = usage.total


def text_tokens(text: str) -> int:
    """Return the most tokens that a text can be expected to have."""
    return len(text) // ASCII_CHARS + 1 if text.isascii() else len(text)


def message_tokens(message: Message) -> int:
    """Return the same of a message."""
    match message:
        case BashMessage(command=command, output=output):
            tokens = text_tokens(command) + text_tokens(output)
        case BranchSummaryMessage(summary=summary) | CompactionSummaryMessage(summary=summary):
            tokens = text_tokens(summary)
        case _:
            tokens = sum(map(_part_tokens, message.content))
    return MESSAGE_TOKENS + tokens


def _part_tokens(part: AssistantContent | UserContent) -> int:
    match part:
        case Text(text=text) | Thinking(text=text):
            return text_tokens(text)
        case Image():
            return IMAGE_TOKENS
        case File():
            return part.tokens
        case ToolCall(arguments=arguments):
            return text_tokens(repr(arguments))
