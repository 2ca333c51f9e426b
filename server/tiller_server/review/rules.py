"""Rules of a project for its reviews, read from the base: rules that a change brings for itself do not count."""

from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import Git

REVIEW_RULES: Final = ".tiller/review.md"
GUIDES: Final = ("AGENTS.md", "CLAUDE.md")
"""Of these the first that is there."""
BASELINE: Final = ".tiller/review-baseline.json"
MOST_BYTES: Final = 32_768


class ProjectRules(Value, frozen=True, kw_only=True):
    """Rules of a project."""

    guide: str = ""
    review: str = ""
    baseline: bytes | None = None
    """The file of accepted findings."""


async def read_rules(git: Git, commit: str) -> ProjectRules:
    """Read the rules of a commit. A missing text is empty, a long one is cut at `MOST_BYTES`."""
    guide = ""
    for name in GUIDES:
        if guide := _text(await read_blob(git, f"{commit}:{name}")):
            break
    return ProjectRules(
        guide=guide,
        review=_text(await read_blob(git, f"{commit}:{REVIEW_RULES}")),
        baseline=await read_blob(git, f"{commit}:{BASELINE}"),
    )


async def read_blob(git: Git, name: str) -> bytes | None:
    """Return the content of a file; None when there is no such file.

    Args:
        git: Git of the repository.
        name: The hash of a blob, or `COMMIT:PATH`.
    """
    answer = await git.ask("cat-file", "blob", name)
    return None if answer.code else answer.output


def _text(content: bytes | None) -> str:
    if content is None:
        return ""
    return content[:MOST_BYTES].decode("utf-8", "replace").strip()
