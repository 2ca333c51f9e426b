"""Questions to the user: their forms, prompts and answers."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.events import (
    Answer,
    Answers,
    FolderTrust,
    PermissionRequest,
    Question,
    QuestionLine,
    QuestionRequested,
    QuestionResolved,
    RuleInfo,
)
from agent_core.events.codec import permission, value
from agent_core.kernel import Clock, RunId, SessionId, uuid7
from agent_core.kernel.errors import UsageError
from agent_core.kernel.threads import run_in_thread
from agent_core.session.history.entries import question_answered_entry, question_asked_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.permissions.broker import PermissionBroker, PermissionState
from agent_core.session.permissions.permission_prompts import (
    CANCELLED,
    TIMEOUT,
    AnswerReceipt,
    PendingPrompts,
    SessionPublisher,
    state_without_prompts,
)
from agent_core.session.permissions.trust import TrustManager
from agent_core.tools.port import AskUser
from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.permissions.policy import Rule, named
from agent_core.workspace.permissions.policy.rules.matching import (
    RulesFileContext,
    pinned,
    why_unsound,
)

MOST_LINES: Final = 20
MOST_OPTIONS: Final = 100
MOST_CHARS: Final = 20_000
"""Of a text, and of an answer in words."""


def check_form(lines: Sequence[QuestionLine]) -> tuple[QuestionLine, ...]:
    """Check that a form can be asked, and return its questions.

    Raises:
        UsageError: The form cannot be answered, or is too large to be read; the message says why.
    """
    if not 1 <= len(lines) <= MOST_LINES:
        message = f"a question has 1 to {MOST_LINES} lines, this one has {len(lines)}"
        raise UsageError(message)
    ids = [line.id for line in lines]
    if len(set(ids)) < len(ids):
        message = f"two lines of the question have the same id: {', '.join(ids)}"
        raise UsageError(message)
    for line in lines:
        _check_line(line)
    return tuple(lines)


def fitting(lines: Sequence[QuestionLine], given: Mapping[str, object]) -> dict[str, Answer]:
    """Return the answers of a form; a line that is left out takes its default.

    Raises:
        UsageError: They do not fit; the text names the line.
    """
    strangers = given.keys() - {line.id for line in lines}
    if strangers:
        message = f"the question has no line {min(strangers)!r}; there are {', '.join(line.id for line in lines)}"
        raise UsageError(message)
    found: dict[str, Answer] = {}
    for line in lines:
        answer = given.get(line.id, line.default)
        if answer is None:
            message = f"line {line.id!r} of the question has no answer and no default"
            raise UsageError(message)
        found[line.id] = _fitting(line, answer)
    return found


def defaults(lines: Sequence[QuestionLine]) -> dict[str, Answer] | None:
    """Return what counts when nobody says anything; None when a line has no default."""
    found = {line.id: line.default for line in lines if line.default is not None}
    return found if len(found) == len(lines) else None


def _check_line(line: QuestionLine) -> None:
    if not line.id or not line.text.strip():
        message = f"line {line.id!r} of the question has no id or says nothing"
        raise UsageError(message)
    if len(line.text) > MOST_CHARS:
        message = f"line {line.id!r} of the question has {len(line.text)} characters, {MOST_CHARS} is the most"
        raise UsageError(message)
    ids = [one.id for one in line.options]
    fits = 1 <= len(ids) <= MOST_OPTIONS and len(set(ids)) == len(ids) and all(ids)
    if line.kind == "choice" and not fits:
        message = f"line {line.id!r} of the question needs 1 to {MOST_OPTIONS} options with ids of their own"
        raise UsageError(message)
    if line.kind != "choice" and ids:
        message = f"line {line.id!r} of the question is a {line.kind}, which has no options"
        raise UsageError(message)
    if line.default is not None:
        _ = _fitting(line, line.default)


def _fitting(line: QuestionLine, answer: object) -> Answer:
    match line.kind, answer:
        case "confirm", bool():
            return answer
        case "text", str() if len(answer) <= MOST_CHARS:
            return answer
        case "choice", str() if _is_option(line, answer):
            return answer
        case "choice", list() | tuple() if answer and all(_is_option(line, one) for one in answer):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - foreign JSON
            return tuple(str(one) for one in answer)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - foreign JSON
        case _:
            message = (
                f"line {line.id!r} of the question takes {_wanted(line)}, not {_shown(answer)}"
            )
            raise UsageError(message)


def _is_option(line: QuestionLine, answer: object) -> bool:
    return any(one.id == answer for one in line.options)


def _wanted(line: QuestionLine) -> str:
    match line.kind:
        case "confirm":
            return "true or false"
        case "text":
            return f"a text of at most {MOST_CHARS} characters"
        case "choice":
            return f"one or more of {', '.join(one.id for one in line.options)}"


def _shown(answer: object) -> str:
    return f"{repr(answer)[:80]}"


POLICY: Final = "policy"
UNSHOWN: Final = "unshown"


class QuestionPrompts:
    """Asks people what is meant. A question and its answer are in the session's file before they are told."""

    def __init__(
        self,
        *,
        session: SessionId,
        clock: Clock,
        recorder: Recorder,
        publisher: SessionPublisher,
        permissions: PermissionState,
    ) -> None:
        self._session = session
        self._clock = clock
        self._recorder = recorder
        self._publisher = publisher
        self._permissions = permissions
        self._prompts: PendingPrompts[Question, Answers] = PendingPrompts(clock)

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions that wait, oldest first."""
        return self._prompts.requests

    @property
    def holds_up(self) -> bool:
        """Whether something does not go on before it is answered."""
        return any(question.blocking for question in self.pending)

    def asks_for(self, run: RunId | None) -> AskUser:
        """Return what asks on behalf of a run."""
        return partial(self.ask_for, run)

    async def ask(
        self,
        questions: Sequence[QuestionLine],
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask for the current run and wait; tools use `ToolContext.ask`, which is withdrawn with their call.

        Args:
            questions: The lines of one form.
            blocking: The asking party does not continue without an answer.
            timeout_s: Time after which the default answers count; None: the timeout of permissions.

        Raises:
            UsageError: The form is not valid; the message contains the reason.
        """
        run = self._publisher.snapshot.activity.run
        return await self.ask_for(run, questions, blocking=blocking, timeout_s=timeout_s)

    async def ask_for(
        self,
        run: RunId | None,
        questions: Sequence[QuestionLine],
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask and wait. On cancellation the question is withdrawn and the withdrawal is published.

        Args:
            run: The run that asks.
            questions: The lines of one form.
            blocking: The asking party does not continue without an answer.
            timeout_s: Time after which the default answers count; None: the timeout of permissions.

        Raises:
            UsageError: The form is not valid; the message contains the reason.
        """
        lines = check_form(questions)
        if self._permissions.fallback != "ask":
            return Answers(answers=defaults(lines), by=POLICY)
        wait_s = self._permissions.timeout_s if timeout_s is None else timeout_s
        now_ms = self._clock.now_ms()
        question = Question(
            request=uuid7(now_ms),
            session=self._session,
            run=run,
            questions=lines,
            blocking=blocking,
            since_ms=now_ms,
            expires_ms=now_ms + round(wait_s * 1000),
        )
        _ = await self._recorder.keep(question_asked_entry(permission(question)))
        self._prompts.open(question)
        _ = self._publisher.publish(QuestionRequested(run=run, request=question))
        if blocking:
            self._publisher.set_state("requiresAction")
        return await self._prompts.wait(
            question,
            silence=Answers(answers=defaults(lines), by=TIMEOUT),
            withdrawn=Answers(answers=None, by=CANCELLED),
            close=partial(self._close, question),
        )

    def answer(
        self, request: str, answers: Mapping[str, object] | None, *, by: str = "user"
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins, and is published to the other clients.

        Args:
            request: The id of the question.
            answers: By the id of the line; None: it is declined. A line that is left out takes its default.
            by: The name of the answering party.

        Raises:
            UsageError: The answers do not fit the question; it still waits.
        """
        asked = self._prompts.unanswered(request)
        if isinstance(asked, AnswerReceipt):
            return asked
        found = None if answers is None else fitting(asked.questions, answers)
        return self._prompts.settle(request, Answers(answers=found, by=by))

    def give_up(self, request: str) -> None:
        """Answer a question with its defaults, because no client can show it. An unknown id changes nothing."""
        asked = self._prompts.unanswered(request)
        if not isinstance(asked, AnswerReceipt):
            answer = Answers(answers=defaults(asked.questions), by=UNSHOWN)
            _ = self._prompts.settle(request, answer)

    async def _close(self, question: Question, answer: Answers) -> None:
        """Close a question: write its answer, then publish it."""
        try:
            _ = await self._recorder.keep(
                question_answered_entry(question.request, value(answer.answers), by=answer.by)
            )
        finally:
            self._prompts.remove(question, by=answer.by)
            _ = self._publisher.publish(
                QuestionResolved(
                    run=question.run,
                    request=question.request,
                    by=answer.by,
                    answers=answer.answers,
                )
            )
            held_up = question.blocking and self._publisher.state == "requiresAction"
            if held_up and not self._publisher.awaits_user():
                self._publisher.set_state(state_without_prompts(self._publisher))


class PermissionView:
    """Permission requests and the lasting answers to them. Changes count from the next check."""

    def __init__(self, broker: PermissionBroker, trust: TrustManager | None, root: Path) -> None:
        self._broker = broker
        self._trust = trust
        self._root = root

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that wait, oldest first."""
        return self._broker.prompts.pending

    @property
    def containment(self) -> SandboxLevel:
        """How far commands are held in."""
        return self._broker.permissions.containment()

    @property
    def trust(self) -> FolderTrust:
        """Whether the workspace is trusted."""
        return FolderTrust(folder=self._root, trusted=self._broker.permissions.is_trusted())

    async def describe_trust(self) -> str:
        """Return what would be in force if the workspace were trusted.

        Raises:
            UsageError: The program that opened the session decided the trust.
        """
        return await self._asked_trust().describe()

    async def decide_trust(self, *, trusted: bool, lasting: bool = True) -> FolderTrust:
        """Apply the user's decision whether to trust the workspace, from the next check and the next run on.

        Args:
            trusted: Whether its instructions and settings are used, and it may be changed.
            lasting: Whether the decision is stored for later sessions.

        Raises:
            UsageError: The program that opened the session decided the trust.
            ConfigError: The decision could not be stored; nothing changed.
        """
        await self._asked_trust().decide(trusted=trusted, lasting=lasting)
        return self.trust

    def _asked_trust(self) -> TrustManager:
        if self._trust is None:
            message = (
                "the trust of this workspace was decided by the program that opened the session"
            )
            raise UsageError(message)
        return self._trust

    @property
    def rules(self) -> tuple[RuleInfo, ...]:
        """The rules in force."""
        from agent_core.session.permissions.requests import shown_rule  # noqa: PLC0415 - at first use

        return tuple(shown_rule(rule) for rule in self._broker.permissions.rules.rules)

    def answer(
        self, request: str, option: str, *, note: str | None = None, by: str = "user"
    ) -> AnswerReceipt:
        """Answer a question; the first answer wins, and is published to the other clients.

        Args:
            request: The id of the question.
            option: The id of one of its options.
            note: A note for the model.
            by: The name of the answering party.

        Raises:
            UsageError: The question has no such option; it still waits.
        """
        return self._broker.prompts.answer(request, option, note=note, by=by)

    async def add(self, rule: RuleInfo) -> tuple[RuleInfo, ...]:
        """Add a rule, store it where its scope says, and return the rules in force.

        Args:
            rule: Without an id it gets one that is derived from its content.

        Raises:
            UsageError: The rule is not valid; nothing changed.
            StorageError: The rule is in force in this session, but could not be stored.
        """
        workspace = self._broker.context.workspace
        ground = RulesFileContext(
            origin="user", roots=tuple(workspace.roots), env_path=workspace.env.get("PATH", "")
        )
        made = await run_in_thread(_checked, rule, ground)
        await self._broker.permissions.remember(made)
        return self.rules

    async def remove(self, rule: str) -> tuple[RuleInfo, ...]:
        """Remove a rule for good and return the rules in force. An unknown id changes nothing.

        Raises:
            StorageError: The rule is no longer in force in this session, but is still stored.
        """
        await self._broker.permissions.forget(rule)
        return self.rules

    async def refresh(self) -> tuple[RuleInfo, ...]:
        """Read the rules again that are kept outside of the session; gives the rules in force."""
        await self._broker.refresh()
        return self.rules


def _checked(shown: RuleInfo, ground: RulesFileContext) -> Rule:
    """Make the rule and hold it to its examples; one that allows is held to the program that it means now."""
    from agent_core.workspace.permissions.policy.rules.examples import wrong_examples  # noqa: PLC0415 - at first use

    rule = pinned(_rule(shown), ground)
    for why in (why_unsound(rule, ground), *wrong_examples(rule, roots=ground.roots)):
        if why is not None:
            message = f"the rule cannot be added: {why}"
            raise UsageError(message)
    return rule


def _rule(shown: RuleInfo) -> Rule:
    made = Rule(
        id=shown.id,
        tool=shown.tool,
        verdict=shown.verdict,
        scope=shown.scope,
        argv_prefix=shown.argv_prefix or (),
        path=shown.path,
        host=shown.host,
        mcp=shown.mcp,
        match=shown.match,
        not_match=shown.not_match,
    )
    return made if made.id else replace(named(made), scope=made.scope)
