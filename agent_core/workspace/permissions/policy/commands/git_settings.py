"""Check whether git itself would start programs, by the names of a repository's settings and hooks: pure."""

import re
from collections.abc import Iterable
from typing import Final

STARTING_KEYS: Final = re.compile(
    r"""
    core\.(fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|attributesfile|worktree)
    | (diff|difftool|merge|mergetool|filter|pager|browser|man|trailer|tar|uploadpack|remote|guitool|hook|credential
       |interactive|gpg|sequence|web|instaweb|sendemail|imap|receive|transfer|alias|submodule|url|protocol|include
       |includeif|extensions|lsp|fsmonitor|maintenance|lfs|http|ssh|init|commit|column|color|notes|safe|gc)\..*
    | branch\..*\.mergeoptions | pull\.(twohead|octopus)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Sections with keys that name a program, another file of settings or another place to work in.

Wide on purpose: a key that is wrongly taken for one of these costs a question.
"""
HARMLESS_KEYS: Final = re.compile(
    r"""
    remote\..*\.(url|fetch|pushurl|tagopt|prune) | color\..* | column\..* | submodule\..*\.(url|active|branch)
    | submodule\.active | init\.defaultbranch | diff\.(renames|algorithm|colormoved|mnemonicprefix|noprefix|context)
    | merge\.(conflictstyle|ff|renames|stat) | commit\.gpgsign | extensions\.(objectformat|refstorage|worktreeconfig)
    | http\.(postbuffer|version)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def starts_programs(names: Iterable[str], *, hooks: Iterable[str]) -> bool:
    """Return whether reading commands of git may start what the repository names.

    Args:
        names: The keys as `git config --local --includes --name-only --list` gives them.
        hooks: The names of the files in the folder of hooks.
    """
    if any(not hook.endswith(".sample") for hook in hooks):
        return True
    return any(
        STARTING_KEYS.fullmatch(name) and not HARMLESS_KEYS.fullmatch(name) for name in names
    )
