"""Keeps the working tree as a commit of git's stash when a run begins, and gives it back on demand."""

import re

from agent_core.extensions import CommandContext, Context, ExtensionApi
from agent_core.hooks import RunBegun
from agent_core.kernel import JsonValue
from agent_core.transcript import CustomEntry

KEPT = "git-checkpoint"
GIT_S = 30.0
COMMIT = re.compile(r"\b[0-9a-f]{40,64}\s*\Z")
"""What is printed last; warnings may stand before it."""


def extension(api: ExtensionApi) -> None:
    """Register what keeps, and the command that gives back."""

    @api.on(RunBegun)
    async def keep(event: RunBegun, ctx: Context) -> None:
        _ = event
        made = await ctx.exec("git", ["stash", "create", "tiller"], timeout_s=GIT_S)
        # Nothing is said when nothing was changed since the last commit, and other words when this is no repository.
        if made.exit_code == 0 and (commit := COMMIT.search(made.output)):
            _ = await api.append_entry(KEPT, {"commit": commit.group().strip()})

    @api.command(description="Give the files back as they were when a run began")
    async def git_restore(words: str, ctx: CommandContext) -> None:
        _ = words
        commits = [
            commit
            for entry in await ctx.branch()
            if isinstance(entry, CustomEntry) and entry.custom_type == KEPT
            if (commit := _commit(entry.data)) is not None
        ]
        if not commits:
            ctx.ui.notify("No run of this branch began with changed files.")
            return
        newest = list(reversed(commits))
        chosen = await ctx.ui.select("Which state of the files?", newest[:4])
        if chosen is None:
            return
        done = await ctx.exec("git", ["restore", f"--source={chosen}", "--", "."], timeout_s=GIT_S)
        if done.exit_code == 0:
            ctx.ui.notify(f"The files are as in {chosen[:8]}.")
        else:
            ctx.ui.notify(f"git could not give them back: {done.output}", "error")


def _commit(data: JsonValue) -> str | None:
    commit = data.get("commit") if isinstance(data, dict) else None
    return commit if isinstance(commit, str) else None
