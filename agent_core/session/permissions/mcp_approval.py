"""Asks a person whether the tools of a server may be used, with all that the server says of them."""

from collections.abc import Callable, Mapping
from typing import Final

from agent_core.events import PermissionOption, PermissionRequest, ServerSubject
from agent_core.kernel import Clock, ItemId, RunId, SessionId
from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import readable
from agent_core.mcp import Approval, McpApprovalReply
from agent_core.session.permissions.permission_prompts import PermissionDecision, PermissionPrompts
from agent_core.session.permissions.state import PermissionState

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
                added=_names(news.added),
                removed=_names(news.removed),
                changed=_names(news.changed),
                unasked=_names(approval.unasked),
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
    unasked = ", ".join(_names(approval.unasked))
    if unasked:
        return f"{what} Without asking each time would run: {unasked}."
    return f"{what} Each use of one is asked about."


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(readable(name) for name in names)
