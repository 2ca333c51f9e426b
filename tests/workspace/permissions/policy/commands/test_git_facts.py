"""Which settings of a repository make git start programs."""

import pytest

from agent_core.workspace.permissions.policy import starts_programs

ORDINARY = [
    "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
    "core.autocrlf", "user.name", "user.email", "remote.origin.url", "remote.origin.fetch", "branch.main.remote",
    "branch.main.merge", "pull.rebase", "push.default", "color.ui", "submodule.x.url", "submodule.active",
    "init.defaultBranch", "diff.renames", "merge.conflictStyle", "extensions.objectFormat", "http.postBuffer",
    "commit.gpgSign", "column.ui",
]  # fmt: skip
STARTING = [
    "core.fsmonitor", "core.hooksPath", "core.pager", "CORE.FSMONITOR", "core.sshCommand", "core.editor",
    "core.attributesFile", "core.worktree", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
    "diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x\ny.process", "alias.status",
    "pager.diff", "merge.x.driver", "include.path", "includeIf.gitdir:/.path", "credential.helper", "gpg.program",
    "remote.origin.uploadpack", "remote.x.vcs", "submodule.x.update", "extensions.partialClone", "url.x.insteadOf",
    "hook.x.command", "difftool.x.cmd", "mergetool.x.cmd", "browser.x.cmd", "protocol.ext.allow", "commit.template",
    "interactive.diffFilter", "sequence.editor", "http.proxy", "init.templateDir", "safe.directory",
]  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_setting_starts_nothing(name: str) -> None:
    assert not starts_programs([name], hooks=["pre-commit.sample"])


@pytest.mark.parametrize("name", STARTING)
def test_a_setting_that_names_a_program_or_more_settings_does(name: str) -> None:
    assert starts_programs(["user.name", name, "user.email"], hooks=[])


def test_a_hook_is_started_but_not_a_sample() -> None:
    assert starts_programs([], hooks=["a.sample", "post-index-change"])
    assert not starts_programs([], hooks=["a.sample", "b.sample"])
