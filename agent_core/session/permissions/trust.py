"""Trust in a workspace and approval of its servers, asked for in a session."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct

from agent_core.events import (
    Event,
    FolderTrust,
    Notice,
    PermissionOption,
    PermissionRequest,
    ServerSubject,
    SessionTrust,
    TrustSubject,
)
from agent_core.kernel import Clock, ItemId, RunId, SessionId
from agent_core.kernel.errors import TillerError
from agent_core.kernel.text import readable
from agent_core.kernel.values import Value
from agent_core.mcp import Approval, McpApprovalReply
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.permissions.permission_prompts import (
    TIMEOUT,
    PermissionDecision,
    PermissionPrompts,
)

REPLIES: Final[Mapping[str, McpApprovalReply]] = {
    "allowProject": "always",
    "allowSession": "session",
    "rejectAlways": "never",
}
OPTIONS: Final = (
    PermissionOption(id="allowProject", kind="allowProject", label="Use these tools"),
    PermissionOption(id="allowSession", kind="allowSession", label="Use them in this session"),
    PermissionOption(id="rejectOnce", kind="rejectOnce", label="Not now"),
    PermissionOption(id="rejectAlways", kind="rejectAlways", label="Never use this server"),
)


class McpApprovalPrompt(Value, frozen=True, kw_only=True):
    """Approval of a tool server by a person: a permission request of the session."""

    session: SessionId
    permissions: PermissionState
    prompts: PermissionPrompts
    clock: Clock
    new_id: Callable[[], str]

    async def __call__(self, approval: Approval, /, *, run: RunId) -> McpApprovalReply:
        """Ask and wait; silence, and nobody to ask, is a no."""
        if self.permissions.fallback != "ask":
            # Whoever lets everything run has said yes to what is new; what has changed is another thing.
            return "session" if self._is_yolo and approval.is_first else "no"
        answered = await self.prompts.ask(self._question(approval, run), remember=_no_rule)
        return _reply(answered)

    @property
    def _is_yolo(self) -> bool:
        return self.permissions.mode == "yolo" and self.permissions.is_trusted()

    def _question(self, approval: Approval, run: RunId) -> PermissionRequest:
        now_ms = self.clock.now_ms()
        server, news = approval.server, approval.news
        return PermissionRequest(
            request=self.new_id(),
            session=self.session,
            run=run,
            item=ItemId(self.new_id()),
            title=_title(approval),
            description=_why(approval),
            risk="high",
            since_ms=now_ms,
            expires_ms=now_ms + round(self.permissions.timeout_s * 1000),
            subject=ServerSubject(
                server=server.name,
                way=readable(approval.about),
                source=server.at,
                added=_tool_names(news.added),
                removed=_tool_names(news.removed),
                changed=_tool_names(news.changed),
                unasked=_tool_names(approval.unasked),
                difference=readable(news.difference),
            ),
            options=OPTIONS,
            default="rejectOnce",
        )


async def _no_rule(_answered: PermissionDecision) -> None:
    """Store no rule: the answer is stored with the hashes of the server's tools that the user saw."""


def _reply(answered: PermissionDecision) -> McpApprovalReply:
    option = answered.option
    return "no" if option is None else REPLIES.get(option.id, "no")


def _title(approval: Approval) -> str:
    name = approval.server.name
    return (
        f"Use the MCP server {name}?" if approval.is_first else f"Use the MCP server {name} again?"
    )


def _why(approval: Approval) -> str:
    news = approval.news
    if approval.is_first:
        what = "The model would see its tools and what they say of themselves."
    elif news.moved:
        what = "It is reached in another way than when you approved it."
    else:
        what = "What it says of its tools has changed since you approved them."
    unasked = ", ".join(_tool_names(approval.unasked))
    if unasked:
        return f"{what} Without asking each time would run: {unasked}."
    return f"{what} Each use of one is asked about."


def _tool_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(readable(name) for name in names)


SessionTrustDecision = Literal["trusted", "refused"]
SHOWN_NAMES = 20

log = logging.getLogger(__name__)


class TrustStatus(Protocol):
    """Trust state of a workspace."""

    @property
    def is_trusted(self) -> bool:
        """Whether it may configure the session."""
        ...

    @property
    def must_ask(self) -> bool:
        """Whether a person should be asked."""
        ...

    @property
    def instructions(self) -> tuple[str, ...]:
        """Where nothing was said yet: the files that would go into the system prompt, also those above the workspace."""
        ...

    @property
    def others(self) -> tuple[str, ...]:
        """The other files that would configure the session then."""
        ...

    @property
    def added(self) -> tuple[str, ...]:
        """Files that were added since it was trusted."""
        ...

    @property
    def removed(self) -> tuple[str, ...]:
        """Files that were removed since."""
        ...

    @property
    def changed(self) -> tuple[str, ...]:
        """Files that were changed since."""
        ...

    @property
    def programs(self) -> tuple[str, ...]:
        """Which of what is new or changed is code that would run in this process."""
        ...

    @property
    def difference(self) -> str:
        """How texts differ, as a unified diff."""
        ...

    @property
    def problem(self) -> str:
        """Why it cannot be told; empty when it can."""
        ...


class Trust(Protocol):
    """The user's word about the workspace, and what it was about."""

    @property
    def root(self) -> Path:
        """The workspace."""
        ...

    def begin(self) -> None:
        """Begin the next `check`, for a run that is about to begin."""
        ...

    async def check(self) -> TrustStatus:
        """Look again at what is there and what was said. Never raises."""
        ...

    async def record(self, said: SessionTrustDecision, *, lasting: bool) -> TrustStatus:
        """Record the user's decision for the state that the last check found.

        Raises:
            ConfigError: The decision could not be stored.
        """
        ...


class _TrustNotices(Struct, kw_only=True):
    """Messages that the user has received already: each is sent once."""

    notice: str = ""
    """Why only reading is allowed."""
    asked_in: RunId | None = None
    """The run before which a person was asked."""
    declined: object = None
    """The subject of a question that a person answered with read-only; it is not asked again in this session."""


class TrustManager(Struct, kw_only=True):
    """The trust of one session. Whatever goes wrong here means that there is none."""

    session: SessionId
    trust: Trust
    permissions: PermissionState
    prompts: PermissionPrompts
    clock: Clock
    new_id: Callable[[], str]
    publish: Callable[[Event], object]
    apply: Callable[[], Awaitable[None]]
    """Reads the settings of the workspace, or leaves them out, when its trust has changed."""
    is_trusted: bool = False
    _notices: _TrustNotices = msgspec.field(default_factory=_TrustNotices)

    async def before_run(self, run: RunId) -> None:
        """Look again, and ask a person where nobody said anything of what is there now. Cancellable."""
        found = await self._look()
        is_asked = run == self._notices.asked_in
        if (
            found is not None
            and found.must_ask
            and self.permissions.fallback == "ask"
            and not is_asked
            and _subject(found) != self._notices.declined
        ):
            self._notices.asked_in = run
            await self.prompts.ask(
                self._question(found, run), remember=partial(self._remember, found)
            )
            found = await self._look()
        if found is None or not found.is_trusted:
            self._publish_untrusted(found)

    async def describe(self) -> str:
        """Return what trust would put into force, and what changed since it was given."""
        found = await self.trust.check()
        return f"{_why_asked(found)} {found.problem}".rstrip()

    async def decide(self, *, trusted: bool, lasting: bool) -> None:
        """Apply a trust decision that the user made without being asked; it counts from the next run on.

        Raises:
            ConfigError: The decision could not be stored; nothing changed.
        """
        _ = await self.trust.check()
        found = await self.trust.record("trusted" if trusted else "refused", lasting=lasting)
        await self._take(is_trusted=found.is_trusted)

    async def _look(self) -> TrustStatus | None:
        try:
            found = await self.trust.check()
        except Exception:
            # Fail closed: whatever is wrong with a check, its answer is no.
            log.exception("the trust of %s could not be checked", self.trust.root)
            await self._take(is_trusted=False)
            return None
        await self._take(is_trusted=found.is_trusted)
        return found

    async def _take(self, *, is_trusted: bool) -> None:
        if is_trusted == self.is_trusted:
            return
        self.is_trusted = is_trusted
        self._notices.notice = ""
        try:
            await self.apply()
        except Exception:
            log.exception("the settings of %s could not be read anew", self.trust.root)
        item = FolderTrust(folder=self.trust.root, trusted=is_trusted)
        _ = self.publish(SessionTrust(items=(item,)))

    async def _remember(self, found: TrustStatus, answered: PermissionDecision) -> None:
        option = None if answered.option is None else answered.option.kind
        if option == "rejectOnce" and answered.by != TIMEOUT:
            self._notices.declined = _subject(found)
        if option in {None, "rejectOnce"}:
            return
        try:
            lasting = option in {"allowProject", "rejectAlways"}
            said: SessionTrustDecision = "trusted" if answered.allows else "refused"
            _ = await self.trust.record(said, lasting=lasting)
        except TillerError as error:
            text = f"what you said could not be kept: {error}"
            _ = self.publish(Notice(level="warning", text=text))

    def _question(self, found: TrustStatus, run: RunId) -> PermissionRequest:
        now_ms = self.clock.now_ms()
        root = self.trust.root
        return PermissionRequest(
            request=self.new_id(),
            session=self.session,
            run=run,
            item=ItemId(self.new_id()),
            title=f"Trust {root.name or root}{'?' if _is_new(found) else ' again?'}",
            description=_why_asked(found),
            risk="high",
            since_ms=now_ms,
            expires_ms=now_ms + round(self.permissions.timeout_s * 1000),
            subject=TrustSubject(
                folder=root,
                added=_names(found.added),
                removed=_names(found.removed),
                changed=_names(found.changed),
                difference=readable(found.difference),
            ),
            options=(
                PermissionOption(id="allowProject", kind="allowProject", label="Trust this folder"),
                PermissionOption(
                    id="allowSession", kind="allowSession", label="Trust it in this session"
                ),
                PermissionOption(id="rejectOnce", kind="rejectOnce", label="Read only for now"),
                PermissionOption(id="rejectAlways", kind="rejectAlways", label="Never trust it"),
            ),
            default="rejectOnce",
        )

    def _publish_untrusted(self, found: TrustStatus | None) -> None:
        """Publish a notice, once, why the workspace is read-only and how to change that."""
        why = "it could not be checked" if found is None else found.problem
        about = f" ({why})" if why else ""
        text = (
            f"{self.trust.root} is not trusted{about}: nothing is changed or run, and its own instructions and "
            f"settings are not used. Trust the folder to change that (tiller trust add {self.trust.root}, or /trust in a conversation)."
        )
        if text != self._notices.notice:
            self._notices.notice = text
            _ = self.publish(Notice(level="warning", text=text))


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(readable(name) for name in names[:SHOWN_NAMES])


def _is_new(found: TrustStatus) -> bool:
    """Return whether the folder was not trusted before."""
    return not (found.added or found.removed or found.changed)


def _subject(found: TrustStatus) -> object:
    """Return what a person is asked about, to compare it."""
    names = (found.instructions, found.others, found.added, found.removed, found.changed)
    return (*names, found.programs, found.difference)


def _why_asked(found: TrustStatus) -> str:
    """Return the reasons of the question, with the files that trust would put into force."""
    why = (
        "Its instructions, settings and extensions would be used, and its files could be changed."
        if _is_new(found)
        else "What can configure Tiller here has changed since you trusted it."
    )
    if found.instructions:
        # All of them: what goes into the system prompt unseen is what the question is about.
        why = (
            f"{why} Instructions that would count: {', '.join(map(readable, found.instructions))}."
        )
    if found.others:
        rest = len(found.others) - SHOWN_NAMES
        more = f" and {rest} more" if rest > 0 else ""
        why = f"{why} Other files that would count: {', '.join(_names(found.others))}{more}."
    if found.programs:
        code = ", ".join(_names(found.programs))
        why = (
            f"{why} It brings code that runs with all your rights, outside of containment: {code}."
        )
    return why
