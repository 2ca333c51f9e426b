"""The permissions of a session for its callers: pending requests, answers, and the standing rules."""

from anyio import to_thread
from msgspec.structs import replace

from agent_core.events import FolderTrust, PermissionRequest, RuleInfo
from agent_core.kernel.errors import UsageError
from agent_core.session.context import SessionContext
from agent_core.session.permissions.permission_prompts import AnswerReceipt
from agent_core.session.permissions.requests import shown_rule
from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.permissions.policy import Rule, named
from agent_core.workspace.permissions.policy.rules.examples import wrong_examples
from agent_core.workspace.permissions.policy.rules.validation import (
    RulesFileContext,
    pinned,
    why_unsound,
)


class PermissionView:
    """Permission requests and the lasting answers to them. Changes count from the next check."""

    def __init__(self, parts: SessionContext) -> None:
        self._gate = parts.gate
        self._trusting = parts.trusting
        self._root = parts.place.workspace.root

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that wait, oldest first."""
        return self._gate.prompts.pending

    @property
    def containment(self) -> SandboxLevel:
        """How far commands are held in."""
        return self._gate.permissions.containment()

    @property
    def trust(self) -> FolderTrust:
        """Whether the workspace is trusted."""
        return FolderTrust(folder=self._root, trusted=self._gate.permissions.is_trusted())

    async def decide_trust(self, *, trusted: bool, lasting: bool = True) -> FolderTrust:
        """Apply the user's decision whether to trust the workspace, from the next check and the next run on.

        Args:
            trusted: Whether its instructions and settings are used, and it may be changed.
            lasting: Whether the decision is stored for later sessions.

        Raises:
            UsageError: The program that opened the session decided the trust.
            ConfigError: The decision could not be stored; nothing changed.
        """
        if self._trusting is None:
            message = (
                "the trust of this workspace was decided by the program that opened the session"
            )
            raise UsageError(message)
        await self._trusting.decide(trusted=trusted, lasting=lasting)
        return self.trust

    @property
    def rules(self) -> tuple[RuleInfo, ...]:
        """The rules in force."""
        return tuple(shown_rule(rule) for rule in self._gate.permissions.rules.rules)

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
        return self._gate.prompts.answer(request, option, note=note, by=by)

    async def add(self, rule: RuleInfo) -> tuple[RuleInfo, ...]:
        """Add a rule, store it where its scope says, and return the rules in force.

        Args:
            rule: Without an id it gets one that is derived from its content.

        Raises:
            UsageError: The rule is not valid; nothing changed.
            StorageError: The rule is in force in this session, but could not be stored.
        """
        workspace = self._gate.context.workspace
        ground = RulesFileContext(
            origin="user", roots=tuple(workspace.roots), env_path=workspace.env.get("PATH", "")
        )
        made = await to_thread.run_sync(_checked, rule, ground)
        await self._gate.permissions.remember(made)
        return self.rules

    async def remove(self, rule: str) -> tuple[RuleInfo, ...]:
        """Remove a rule for good and return the rules in force. An unknown id changes nothing.

        Raises:
            StorageError: The rule is no longer in force in this session, but is still stored.
        """
        await self._gate.permissions.forget(rule)
        return self.rules

    async def refresh(self) -> tuple[RuleInfo, ...]:
        """Read the rules again that are kept outside of the session; gives the rules in force."""
        await self._gate.refresh()
        return self.rules


def _checked(shown: RuleInfo, ground: RulesFileContext) -> Rule:
    """Make the rule and hold it to its examples; one that allows is held to the program that it means now."""
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
