"""The plan of a session that waits for an answer, read from the conversation, and the answer to it."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agent_core.events import PermissionMode
from agent_core.kernel.errors import SessionBusy, UsageError
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Message, ToolResultMessage, UserMessage
from agent_core.session.input.submission import Receipt
from agent_core.session.session import AgentSession

TOOL: Final = "plan"
ANSWERED: Final = "tiller.plan"
"""Type of the message that says that a plan was rejected."""
SHOWN_HASH: Final = 12
"""How many digits of a hash people see and write."""

PlanAnswer = Literal["approve", "approveAuto", "change", "reject"]
OFFERED: Final[Mapping[PlanAnswer, str]] = {
    "approve": "Yes, and ask before risky steps",
    "approveAuto": "Yes, in mode auto",
    "reject": "No, and stay in mode plan",
}
"""Titles of the answers in menus; text that is typed instead asks for a change."""


class OpenPlan(Value, frozen=True, kw_only=True):
    """A plan of the model."""

    revision: int
    """From 1, counted in the conversation."""
    sha256: str
    markdown: str

    @property
    def short_hash(self) -> str:
        """The first digits of the hash, which people see and write."""
        return self.sha256[:SHOWN_HASH]


def open_plan(messages: Sequence[Message]) -> OpenPlan | None:
    """Return the newest plan of a branch if nothing was said after it; None: no plan waits for an answer.

    Args:
        messages: The conversation as the model sees it.
    """
    revision = 0
    found: OpenPlan | None = None
    for message in messages:
        if isinstance(message, UserMessage) or _is_answer(message):
            found = None
        elif (stored := _stored(message)) is not None:
            revision += 1
            found = OpenPlan(
                revision=revision,
                sha256=str(stored.get("sha256")),
                markdown=str(stored.get("markdown")),
            )
    return found


async def answer_plan(
    session: AgentSession,
    answer: PlanAnswer,
    *,
    sha256: str,
    revision: int | None = None,
    text: str | None = None,
) -> Receipt | None:
    """Answer the plan that waits; only an approval leaves the mode `plan`.

    Args:
        session: The session.
        answer: `approve` carries it out in mode `ask`, `approveAuto` in mode `auto`, `change` goes on planning,
            `reject` keeps the mode and starts nothing.
        sha256: The hash of the plan that is meant, or at least its first 12 digits.
        revision: The revision that is meant; None: whatever has this hash.
        text: For `change`: the wishes of the user. For an approval: the plan as the user edited it.

    Returns:
        The receipt of the run that begins; None: none does.

    Raises:
        UsageError: No plan waits, another one is meant, the text is missing, or the mode is not allowed.
        SessionBusy: A run is going on.
    """
    plan = _meant(session, sha256, revision)
    match answer:
        case "reject":
            rejection = f"I reject the plan (revision {plan.revision}). Do not carry it out."
            _ = await session.add(rejection, custom_type=ANSWERED, details={"sha256": plan.sha256})
            return None
        case "change":
            if text is None or not text.strip():
                message = "say what is to be different about the plan"
                raise UsageError(message)
            return await session.prompt(text, source="person")
        case "approve" | "approveAuto":
            mode: PermissionMode = "auto" if answer == "approveAuto" else "ask"
            return await _approve(session, plan, mode, text)


async def approve_plan(
    session: AgentSession, *, sha256: str, mode: Literal["ask", "auto"]
) -> Receipt:
    """Carry out the plan that waits, in a mode.

    Args:
        session: The session.
        sha256: The hash of the plan that is meant, or at least its first 12 digits.
        mode: The mode.

    Raises:
        UsageError: No plan waits, another one is meant, or the mode is not allowed.
        SessionBusy: A run is going on.
    """
    return await _approve(session, _meant(session, sha256, None), mode, None)


async def _approve(
    session: AgentSession, plan: OpenPlan, mode: PermissionMode, edited: str | None
) -> Receipt:
    if not session.programs.is_idle:
        message = "a run is going on: the plan can be carried out when it is over"
        raise SessionBusy(message)
    approval = _approval(plan, edited)
    _set_mode(session, mode)
    receipt = None
    try:
        receipt = await session.prompt(approval)
        return receipt
    finally:
        if receipt is None:
            _ = session.info.configure(mode="plan")


def _meant(session: AgentSession, sha256: str, revision: int | None) -> OpenPlan:
    """Return the plan that waits; a user must not approve a plan that they have not read."""
    plan = open_plan(session.info.messages)
    if plan is None:
        message = "no plan waits for an answer: it was answered already, or there is none"
        raise UsageError(message)
    is_meant = len(sha256) >= SHOWN_HASH and plan.sha256.startswith(sha256.lower())
    if not is_meant or revision not in {None, plan.revision}:
        message = (
            f"this answer is about another plan: revision {plan.revision} with the hash {plan.short_hash} "
            "waits now; read it, then answer that one"
        )
        raise UsageError(message)
    return plan


def _set_mode(session: AgentSession, mode: PermissionMode) -> None:
    allowed = session.info.allowed_mode
    if allowed == "plan" or (allowed == "ask" and mode == "auto"):
        message = (
            f"the mode {allowed!r} is the most that the settings or --permission allow here, so the plan cannot be carried "
            f"out in mode {mode!r}: change permission.mode, or start without --permission"
        )
        raise UsageError(message)
    _ = session.info.configure(mode=mode)


def _approval(plan: OpenPlan, edited: str | None) -> str:
    if edited is not None and not edited.strip():
        message = "the edited plan is empty: write what is to be carried out, or reject the plan"
        raise UsageError(message)
    if edited is None or edited.strip() == plan.markdown:
        return f"I approve the plan (revision {plan.revision}). Carry it out."
    return f"I changed the plan and approve it as follows. Carry it out.\n\n{edited.strip()}"


def _is_answer(message: Message) -> bool:
    return isinstance(message, CustomMessage) and message.custom_type == ANSWERED


def _stored(message: Message) -> dict[str, object] | None:
    if not isinstance(message, ToolResultMessage) or message.tool_name != TOOL or message.is_error:
        return None
    stored = as_object(as_object(message.details).get(TOOL))
    return dict(stored) if stored.get("markdown") else None
