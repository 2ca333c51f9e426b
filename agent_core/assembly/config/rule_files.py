"""Keeps standing answers in files: the user's own, those about a workspace, and what the project itself asks for."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from agent_core.kernel.values import Value
from agent_core.session.permissions.state import LoadedRules
from agent_core.workspace.permissions.policy import Rule
from agent_core.workspace.permissions.policy.rules.rules_file import (
    NAME,
    RulesOrigin,
    load_rules,
    remembered_file,
)
from agent_core.workspace.permissions.policy.rules.rules_file_writer import remove_rule, save_rule

PROJECT_FOLDER = ".tiller"


class RuleFiles(Value, frozen=True, kw_only=True):
    """The rules of one workspace. Answers "for this project" lie in the user's own folder, never in the project."""

    config: Path
    """The user's folder of configuration."""
    data: Path
    """The user's folder of data."""
    roots: Sequence[Path]
    """The primary one first; those that are not trusted are not among them."""
    env_path: Callable[[], str]
    """The PATH of commands, which is that of whoever spoke last."""
    home: Path
    is_trusted: Callable[[], bool]
    """Whether the project's own file counts; it can only ask and deny."""

    async def load(self) -> LoadedRules:
        """Return the rules in force. A file that cannot be read is reported as a problem and permits nothing more."""
        return await to_thread.run_sync(self._load, self.env_path())

    async def save(self, rule: Rule) -> None:
        """Keep a rule of the scopes `project` and `user`."""
        await to_thread.run_sync(save_rule, self._place(rule), rule)

    async def remove(self, rule_id: str) -> None:
        """Forget a rule wherever it is kept."""
        for path in (self._user, self._remembered):
            _ = await to_thread.run_sync(remove_rule, path, rule_id)

    @property
    def _user(self) -> Path:
        return self.config / NAME

    @property
    def _remembered(self) -> Path:
        return remembered_file(self.data, self.roots[0])

    def _place(self, rule: Rule) -> Path:
        return self._user if rule.scope == "user" else self._remembered

    def _load(self, env_path: str) -> LoadedRules:
        roots = tuple(self.roots)
        files: list[tuple[Path, RulesOrigin]] = [
            (self._user, "user"),
            (self._remembered, "project"),
        ]
        if self.is_trusted():
            files.extend((root / PROJECT_FOLDER / NAME, "repository") for root in roots)
        load = partial(load_rules, roots=roots, env_path=env_path, home=self.home)
        loaded = [load(path, origin=origin) for path, origin in files]
        return LoadedRules(
            rules=tuple(rule for one in loaded for rule in one.rules),
            problems=tuple(str(problem) for one in loaded for problem in one.problems),
        )
