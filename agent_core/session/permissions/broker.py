"""The broker of permissions: decides, asks and remembers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast

import msgspec
from anyio import Lock
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import ErrorRaised, Event, Failure, Notice, RuleInfo
from agent_core.kernel import Clock, ItemId, JsonObject, RunId, SessionId, ToolCallId
from agent_core.kernel.errors import TillerError, ToolError, WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.session.permissions.permission_prompts import (
    TIMEOUT,
    TOO_MANY,
    PermissionDecision,
    PermissionPrompts,
)
from agent_core.tools.command import script_of
from agent_core.workspace import Workspace
from agent_core.workspace.files.paths import is_inside
from agent_core.workspace.permissions.call_permission import (
    LETS_IN,
    Allowed,
    CallRefused,
    CallVerdict,
    Needs,
    PolicyMode,
    SandboxLevel,
    SecretAccess,
    ToolKind,
)
from agent_core.workspace.permissions.policy import (
    Allow,
    Ask,
    CommandAccess,
    Decision,
    Deny,
    FileAccess,
    PolicyContext,
    PolicyRuleScope,
    Rule,
    RuleSet,
    Subject,
    ToolAccess,
)
from agent_core.workspace.permissions.protected_names import is_protected, is_secret
from agent_core.workspace.port import PathAccess

if TYPE_CHECKING:
    from agent_core.session.permissions.requests import RequestedCall

Fallback = Literal["ask", "rules", "deny"]
STRICTEST_FIRST: Sequence[PolicyMode] = ("plan", "ask", "auto", "yolo")
WEAKEST_FIRST: Sequence[SandboxLevel] = ("none", "partial", "full")
LASTING: frozenset[PolicyRuleScope] = frozenset({"project", "user"})
"""Scopes that outlive the session: their rules are kept elsewhere and read again."""


class LoadedRules(Value, frozen=True, kw_only=True):
    """The rules that were found, and what could not be used, a sentence each."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()


class RuleStore(Protocol):
    """Where standing answers outlive a session."""

    async def load(self) -> LoadedRules:
        """Return the rules in force for this workspace. Never raises: rules that cannot be read are problems."""
        ...

    async def save(self, rule: Rule) -> None:
        """Keep a rule of the scopes `project` and `user`.

        Raises:
            StorageError: It could not be written.
        """
        ...

    async def remove(self, rule_id: str) -> None:
        """Forget a rule wherever it is kept; an unknown id changes nothing.

        Raises:
            StorageError: It could not be written.
        """
        ...


class NullRuleStore:
    """Keeps nothing beyond the session."""

    async def load(self) -> LoadedRules:
        """Return nothing."""
        return LoadedRules()

    async def save(self, rule: Rule) -> None:  # pyright: ignore[reportUnusedParameter] - the port's
        """Leave the rule to the session alone."""

    async def remove(self, rule_id: str) -> None:  # pyright: ignore[reportUnusedParameter] - the port's
        """Forget what was not kept."""


class PermissionState(Struct, kw_only=True):
    """Present state; each check reads it again, so a change counts from the next one."""

    mode: PolicyMode = "ask"
    fallback: Fallback = "ask"
    """Handling of a decision that needs the user: `ask` waits for the user; `rules` and `deny` refuse it at once."""
    timeout_s: float = 300.0
    """How long a person is waited for."""
    is_trusted: Callable[[], bool] = lambda: True
    """Whether the workspace may configure and be changed; asked at each check."""
    containment: Callable[[], SandboxLevel] = lambda: "none"
    """How far commands are held in; asked at each check."""
    rules: RuleSet = msgspec.field(default_factory=RuleSet)
    keeper: RuleStore = msgspec.field(default_factory=NullRuleStore)
    ceiling: PolicyMode = "yolo"
    """The most that is allowed, whatever the mode."""
    outer: "PermissionState | None" = None
    """State of the session that gave this task; nothing is allowed here that is not allowed there. None: no task."""
    _keeping: Lock = msgspec.field(default_factory=Lock)
    """Held while what is kept is read or written."""

    def snapshot(self, roots: tuple[Path, ...]) -> PolicyContext:
        """Return what holds at this moment."""
        mode = stricter_mode(self.mode, self.ceiling)
        if self.outer is None:
            return PolicyContext(
                mode=mode,
                trusted=self.is_trusted(),
                containment=self.containment(),
                rules=self.rules,
                roots=roots,
            )
        outer = self.outer.snapshot(roots)
        return PolicyContext(
            mode=stricter_mode(mode, outer.mode),
            trusted=self.is_trusted() and outer.trusted,
            containment=_weaker(self.containment(), outer.containment),
            rules=RuleSet(rules=(*outer.rules.rules, *self.rules.rules)),
            roots=roots,
        )

    async def refresh(self) -> tuple[str, ...]:
        """Read the lasting rules again: another session, or the user in an editor, may have changed them.

        Returns:
            The problems of rules that could not be used, one sentence each.
        """
        if self.outer is not None:
            return await self.outer.refresh()
        async with self._keeping:
            kept = await self.keeper.load()
            own = (rule for rule in self.rules.rules if rule.scope not in LASTING)
            self.rules = RuleSet(rules=(*kept.rules, *own))
        return kept.problems

    async def remember(self, rule: Rule) -> None:
        """Add a rule with immediate effect, then store it where its scope says.

        Raises:
            StorageError: The rule is in force in this session, but could not be stored.
        """
        if self.outer is not None and rule.scope != "run":
            await self.outer.remember(rule)
            return
        self.rules = self.rules.with_rule(rule)
        if rule.scope not in LASTING:
            return
        async with self._keeping:
            try:
                await self.keeper.save(rule)
            except BaseException:
                # The next reading of what is kept would lose it.
                self.rules = self.rules.with_rule(scoped(rule, "session"))
                raise
            # A reading that was under way when it came in force has not found it.
            self.rules = self.rules.with_rule(rule)

    async def forget(self, rule_id: str) -> None:
        """Remove a rule, also from where it is stored.

        Raises:
            StorageError: The rule is no longer in force in this session, but is still stored.
        """
        matching = [rule for rule in self.rules.rules if rule.id == rule_id]
        self.rules = self.rules.without(rule_id)
        if not any(rule.scope in LASTING for rule in matching):
            return
        async with self._keeping:
            await self.keeper.remove(rule_id)
            # A reading that was under way has found it again.
            self.rules = self.rules.without(rule_id)

    def end_run(self) -> None:
        """Forget what was allowed for the run."""
        self.rules = self.rules.without_scope("run")


def stricter_mode(one: PolicyMode, other: PolicyMode) -> PolicyMode:
    """Return the mode that allows less."""
    return one if STRICTEST_FIRST.index(one) < STRICTEST_FIRST.index(other) else other


def _weaker(one: SandboxLevel, other: SandboxLevel) -> SandboxLevel:
    return one if WEAKEST_FIRST.index(one) < WEAKEST_FIRST.index(other) else other


def scoped(rule: Rule, scope: PolicyRuleScope) -> Rule:
    """Return a rule another extent; its id stays, for it says the same."""
    return replace(rule, scope=scope)


NEEDS: Final[Mapping[str, Needs]] = {need: need for need in LETS_IN}
ENOUGH: Final = "it was not run: this run was refused so often that it ends here"
FAILED: Final = "the permission check failed ({error}), which means no"

log = logging.getLogger(__name__)


class BrokerContext(Value, frozen=True, kw_only=True):
    """The parts of the session that the gate uses."""

    session: SessionId
    workspace: Workspace
    clock: Clock
    new_id: Callable[[], str]
    item_of: Callable[[ToolCallId], ItemId]
    """Returns the item id of a call."""
    publish: Callable[[Event], object]
    settings_of: Callable[[str], JsonObject] = lambda _: {}
    """Returns the present settings of a tool."""
    server_of: Callable[[str], str | None] = lambda _: None
    """Returns `server/tool` of a tool of an MCP server."""
    host_of: Callable[[str, Mapping[str, object], JsonObject], str | None] = lambda _, __, ___: None
    """Returns the host that a call reaches, by its tool, its arguments and the settings of the tool."""


class JudgedPath(Value, frozen=True, kw_only=True):
    """The real path that a path of a call meant when the call was judged."""

    path: str
    access: PathAccess
    found: Path


class PermissionBroker(Struct, kw_only=True):
    """Judges tool calls. A judgement that fails refuses; so do silence and a client that went away."""

    permissions: PermissionState
    prompts: PermissionPrompts
    context: BrokerContext
    secrets: SecretAccess = msgspec.field(default_factory=SecretAccess)
    """Learns what a person lets the session read."""
    approved: dict[ToolCallId, frozenset[Path]] = msgspec.field(default_factory=dict)
    """Protected files that a person let a call change; until the next call of that id, or the end of the run."""
    levels: dict[ToolCallId, SandboxLevel] = msgspec.field(default_factory=dict)
    """How far commands were held in when a call was judged, or as its question said; as long as `approved`."""
    warned: dict[ToolCallId, str] = msgspec.field(default_factory=dict)
    """Warnings for the model about the name of the file that a call changes; they last as long as `approved`."""
    judged: dict[ToolCallId, JudgedPath] = msgspec.field(default_factory=dict)
    """The path of each call as it was judged; they last as long as `approved`."""
    _notified_paths: set[Path] = msgspec.field(default_factory=set[Path])

    async def judge(
        self,
        *,
        call: ToolCallId,
        run: RunId | None,
        tool: str,
        kind: ToolKind,
        arguments: Mapping[str, object],
    ) -> CallVerdict:
        """Judge one call after its arguments were checked; waits while a person is asked."""
        _ = self.approved.pop(call, None)
        _ = self.levels.pop(call, None)
        _ = self.judged.pop(call, None)
        if self.prompts.is_over(run):
            return CallRefused(reason=ENOUGH)
        try:
            verdict = await self._judge(call, run, tool, kind, arguments)
        except Exception as error:
            # Fail closed: whatever is wrong with a check, its answer is no.
            log.exception("the permission check of %s failed", tool)
            return CallRefused(reason=FAILED.format(error=type(error).__name__))
        return verdict

    def approved_for(self, call: ToolCallId) -> frozenset[Path]:
        """Return the protected files that a person let a call change."""
        return self.approved.get(call, frozenset())

    def needs_for(self, call: ToolCallId) -> frozenset[Needs]:
        """Return what the processes of a call may do by its judgement: run uncontained only if it was judged so."""
        contained = self.levels.get(call, "full") == "full"
        return frozenset() if contained else frozenset({"uncontained"})

    def end_run(self, run: RunId) -> None:
        """Forget what was allowed and refused for a run that is over."""
        self.prompts.end_run(run)
        self.permissions.end_run()
        self.approved.clear()
        self.levels.clear()
        self.judged.clear()
        self.warned.clear()

    async def refresh(self) -> None:
        """Read the lasting rules again; rules that cannot be used are reported."""
        for problem in await self.permissions.refresh():
            failure = Failure(kind="Internal", message=problem)
            _ = self.context.publish(ErrorRaised(run=None, error=failure))

    async def _judge(
        self,
        call: ToolCallId,
        run: RunId | None,
        tool: str,
        kind: ToolKind,
        arguments: Mapping[str, object],
    ) -> CallVerdict:
        try:
            subject = await self._subject(call, tool, kind, arguments)
        except (WorkspaceError, ToolError) as error:
            # The tool would say the same; but what the path means may change until then.
            return CallRefused(reason=str(error), happened=error.happened)
        await self._warn_of_name(call, subject, asked=str(arguments.get("path")))
        decision = await self._decide(subject, call)
        if isinstance(decision, Ask) and self.permissions.fallback == "ask":
            # Before a person is bothered: another session may have been told already.
            await self.refresh()
            decision = await self._decide(subject, call)
        match decision:
            case Allow():
                return Allowed()
            case Deny(reason=reason, happened=happened):
                return CallRefused(reason=reason, happened=happened)
            case Ask() if self.permissions.fallback != "ask":
                self.prompts.count_denial(run)
                return _unasked(decision, subject)
            case Ask():
                asked = self._call(call, run, tool, arguments)
                return await self._ask(decision, subject, call, asked)

    async def _warn_of_name(self, call: ToolCallId, subject: Subject, *, asked: str) -> None:
        """Warn people, once for each file, of a name that looks like another; the call goes on."""
        from agent_core.workspace.files.lookalikes import name_warning  # noqa: PLC0415 - at first use

        self.warned.pop(call, None)
        if not isinstance(subject, FileAccess) or subject.operation == "read":
            return
        workspace = self.context.workspace
        why = await name_warning(
            subject.path, asked=asked, roots=workspace.roots, files=workspace.files
        )
        if why is None:
            return
        self.warned[call] = (
            f"Warning: {why}. The user was told; check that this is the file you mean."
        )
        if subject.path not in self._notified_paths:
            self._notified_paths.add(subject.path)
            text = f"The agent changes a file whose name may mislead: {why}. Check that it is the file you mean."
            _ = self.context.publish(Notice(level="warning", text=text))

    async def _ask(
        self, ask: Ask, subject: Subject, call: ToolCallId, asked: "RequestedCall"
    ) -> CallVerdict:
        """Ask the user; the policy checks an allowed call again after the answer."""
        from agent_core.session.permissions.requests import build_request, shows_content  # noqa: PLC0415 - at first use

        context, permissions = self.context, self.permissions
        request = await run_in_thread(
            partial(
                build_request,
                ask,
                subject,
                asked,
                request=context.new_id(),
                containment=self.levels[call],
                now_ms=context.clock.now_ms(),
                timeout_s=permissions.timeout_s,
            )
        )
        answered = await self.prompts.ask(request, remember=partial(self._remember, ask))
        if not answered.allows:
            return _refusal(answered, permissions.timeout_s)
        # The mode or a rule may have changed while somebody thought.
        again = await self._decide(subject)
        if isinstance(again, Deny):
            return CallRefused(reason=again.reason, happened=again.happened)
        if isinstance(subject, FileAccess):
            self.approved[call] = frozenset({subject.path})
            if subject.operation == "read" and subject.protected and shows_content(asked.tool):
                self.secrets.allow(subject.path)
        return Allowed()

    async def _decide(self, subject: Subject, call: ToolCallId | None = None) -> Decision:
        """Decide by what holds now; for a call it is kept how far commands are held in."""
        from agent_core.workspace.permissions.policy.decision import decide, decide_unread  # noqa: PLC0415 - at first use

        situation = self.permissions.snapshot(tuple(self.context.workspace.roots))
        if call is not None:
            self.levels[call] = situation.containment
        if isinstance(subject, CommandAccess):
            if (allowed := decide_unread(subject, situation)) is not None:
                return allowed
            # Reading a command loads a grammar once, and looks for programs on the disk.
            return await run_in_thread(decide, subject, situation)
        return decide(subject, situation)

    async def _remember(self, ask: Ask, answered: PermissionDecision) -> RuleInfo | None:
        """Apply the rule of an answer before the answer is published, and return it; None: there is none."""
        from agent_core.session.permissions.requests import shown_rule  # noqa: PLC0415 - at first use

        chosen = answered.option
        option = (
            None if chosen is None else next((o for o in ask.options if o.id == chosen.id), None)
        )
        if option is None or option.rule is None:
            return None
        try:
            await self.permissions.remember(option.rule)
        except TillerError as error:
            text = f"the rule holds in this session but could not be kept: {error}"
            _ = self.context.publish(Notice(level="warning", text=text))
        return shown_rule(option.rule)

    async def _subject(
        self, call: ToolCallId, tool: str, kind: ToolKind, arguments: Mapping[str, object]
    ) -> Subject:
        """Return what a call wants, as the tool itself will understand its arguments."""
        server = self.context.server_of(tool)
        if server is not None:
            # Whatever its arguments are called, they mean nothing in this workspace.
            return ToolAccess(tool=tool, kind=kind, mcp=server)
        command, path = arguments.get("command"), arguments.get("path")
        if kind == "execute" and isinstance(command, str):
            return await self._command(command, arguments.get("needs"))
        if kind == "read" and (path is None or isinstance(path, str)):
            return await self._read(call, path or ".")
        if kind == "edit" and isinstance(path, str):
            return await self._edit(call, path)
        host = self.context.host_of(tool, arguments, self.context.settings_of(tool))
        return ToolAccess(tool=tool, kind=kind, host=host)

    async def _command(self, command: str, needs: object) -> CommandAccess:
        workspace = self.context.workspace
        asked = cast("Sequence[object]", needs if isinstance(needs, list | tuple) else ())
        return CommandAccess(
            command=command,
            cwd=workspace.root,
            needs=frozenset(NEEDS[str(one)] for one in asked),
            # Programs of another machine cannot be looked at, so no rule holds on to one.
            env_path=workspace.env.get("PATH", "") if workspace.address is None else "",
            git_starts_programs="git" not in command.casefold()
            or workspace.address is not None
            or await run_in_thread(self._git_starts_programs, command),
        )

    def _git_starts_programs(self, command: str) -> bool:
        """Return whether git may start what a repository names; yes when that makes no difference. Blocking."""
        from agent_core.workspace.permissions.policy.commands.git_inspection import (  # noqa: PLC0415 - at first use
            git_starts_programs,
        )
        from agent_core.workspace.permissions.policy.commands.git_operations import (  # noqa: PLC0415 - at first use
            git_use,
            line_starts_programs,
        )

        workspace = self.context.workspace
        if self.permissions.containment() != "full":
            return git_starts_programs(workspace.root)
        # Where commands are contained, what git starts is contained as well, but for the repository's data.
        return git_use(command) != "adds" or line_starts_programs(
            command, cwd=workspace.root, roots=tuple(workspace.roots)
        )

    async def _resolve(self, call: ToolCallId, path: str, access: PathAccess) -> Path:
        found = await self.context.workspace.files.resolve(path, access)
        self.judged[call] = JudgedPath(path=path, access=access, found=found)
        return found

    async def _read(self, call: ToolCallId, path: str) -> FileAccess:
        workspace = self.context.workspace
        try:
            found = await self._resolve(call, path, "read")
        except WorkspaceError:
            # Nothing is read then: the tool says why in its own words.
            return FileAccess(path=workspace.root, operation="read", inside=True, protected=False)
        secret = is_secret(found, roots=workspace.roots) is not None
        return FileAccess(path=found, operation="read", inside=True, protected=secret)

    async def _edit(self, call: ToolCallId, path: str) -> FileAccess:
        from agent_core.workspace.permissions.protected_links import protected_by_link  # noqa: PLC0415 - at first use

        workspace = self.context.workspace
        target = await self._resolve(call, path, "write")
        look = partial(protected_by_link, target, roots=tuple(workspace.roots))
        return FileAccess(
            path=target,
            operation="edit",
            inside=is_inside(target, tuple(workspace.roots)),
            protected=is_protected(target, roots=workspace.roots) is not None
            or (workspace.address is None and await run_in_thread(look) is not None),
        )

    def _call(
        self, call: ToolCallId, run: RunId | None, tool: str, arguments: Mapping[str, object]
    ) -> "RequestedCall":
        from agent_core.session.permissions.requests import RequestedCall, as_input  # noqa: PLC0415 - at first use

        command = arguments.get("command")
        return RequestedCall(
            session=self.context.session,
            run=run,
            item=self.context.item_of(call),
            tool=tool,
            arguments=as_input(arguments),
            script=script_of(command, self.context.settings_of(tool))
            if isinstance(command, str)
            else None,
        )


def _refusal(answered: PermissionDecision, timeout_s: float) -> CallRefused:
    """Return why not, and what the model is to do about it."""
    if answered.by == TIMEOUT:
        why = f"no answer: the user was asked and said nothing for {timeout_s:g} s, which means no."
        return CallRefused(
            reason=f"{why} Go on without it, or say what you need and stop.",
            happened=f"Not run: the question had no answer for {timeout_s:g} s.",
        )
    if answered.by == TOO_MANY or answered.option is None:
        return CallRefused(reason=ENOUGH)
    always = " and will not be asked again" if answered.option.kind == "rejectAlways" else ""
    note = answered.note.rstrip() if answered.note else ""
    end = "" if note.endswith((".", "!", "?")) else "."
    said = f" They said: {note}{end}" if note else ""
    reason = f"the user refused this{always}.{said} Do not try it in another way; go on without it, or ask them."
    return CallRefused(
        reason=reason, happened=f"You rejected this: {note}" if note else "You rejected this."
    )


def _unasked(ask: Ask, subject: Subject) -> CallRefused:
    """Return that nobody can be asked, and what would allow it."""
    rule = next((one.rule for one in ask.options if one.rule and one.rule.verdict == "allow"), None)
    ways: list[str] = []
    if rule is not None:
        if rule.argv_prefix and rule.host is None:
            ways.append(f"`--allow {quote(join(rule.argv_prefix))}`")
        what = " ".join(rule.argv_prefix) or rule.host or rule.path or rule.mcp
        ways.append(
            f"a rule for {f'the tool {rule.tool!r}' if what is None else repr(what)} in policy.json"
        )
    if not (isinstance(subject, FileAccess) and subject.protected):
        ways.append(
            '`--permission yolo`, or "permission": {"mode": "yolo"} in their own settings.json'
        )
    why = f"{ask.reason}, and nobody can be asked here."
    allowed = f" The user can allow it with {', or '.join(ways)}." if ways else ""
    advised = f" To allow it: {', or '.join(ways)}." if ways else ""
    return CallRefused(
        reason=f"refused: {why}{allowed} Go on without it, or tell the user what to run.",
        happened=f"Refused: {why}{advised}",
    )
