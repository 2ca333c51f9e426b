"""Asks Git what `.gitattributes` says of paths."""

from collections.abc import Mapping, Sequence
from typing import Final

from tiller_server.review.git.client import Git

ASKED: Final = ("linguist-generated", "linguist-vendored", "diff")


async def load_attributes(git: Git, commit: str) -> bool:
    """Write the `.gitattributes` files of a commit into the index; return whether there are any.

    The commit is the base: attributes that a change sets for itself do not count.

    Args:
        git: With an index of its own (`GIT_INDEX_FILE`), which gets nothing else.
        commit: The commit of the files.
    """
    listed = await git.output("ls-tree", "-r", "-z", "--full-tree", commit)
    if b".gitattributes\0" not in listed:
        return False
    rules = b"".join(
        entry + b"\0"
        for entry in listed.split(b"\0")
        if entry.endswith((b"\t.gitattributes", b"/.gitattributes"))
    )
    if rules:
        _ = await git.output("update-index", "-z", "--index-info", stdin=rules)
    return bool(rules)


async def read_attributes(git: Git, paths: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the attributes of each path by the loaded rules; unspecified attributes are left out."""
    if not paths:
        return {}
    asked = "\0".join(paths).encode("utf-8", "surrogateescape") + b"\0"
    said = await git.output("check-attr", "--cached", "-z", "--stdin", *ASKED, stdin=asked)
    fields = [word.decode("utf-8", "surrogateescape") for word in said.split(b"\0")]
    found: dict[str, dict[str, str]] = {}
    for place in range(0, len(fields) - 2, 3):
        path, name, value = fields[place : place + 3]
        if value != "unspecified":
            found.setdefault(path, {})[name] = value
    return found
