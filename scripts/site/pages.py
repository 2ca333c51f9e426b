"""The files of the documentation site, a hook of MkDocs: the Markdown files of the repository, where they are.

Links in them lead from file to file of the repository. The site keeps these paths, so that the same links work in a
checkout, on a code host and on the site; only `docs/` is left out of the addresses.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (
    "*.md",
    "agent_core/*.md",
    "agent_core/decisions/*.md",
    "agent_core/hooks/*.md",
    "docs/**/*.md",
    "examples/*/README.md",
    "examples/*/*/README.md",
    "server/*.md",
    "tests/README.md",
    "vscode-client/README.md",
)
ASSETS: Final = ("docs/pictures/*", "vscode-client/media/*.png")
LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
CODE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Return the files of the site in place of those below `docs_dir` alone."""
    from mkdocs.structure.files import File, Files  # noqa: PLC0415 - the tests read PAGES without it

    own = [file for file in files if file.inclusion.is_excluded() or file.abs_src_path is None]
    theme = [file for file in files if file not in own and not _is_below_docs(file.abs_src_path)]
    added: list[File] = []
    for path in paths():
        file = File.generated(config, path.as_posix(), abs_src_path=str(ROOT / path))
        file.dest_uri = file.dest_uri.removeprefix("docs/")
        added.append(file)
    return Files([*theme, *added])


def on_page_markdown(markdown: str, *, page: "Page", files: "Files", **_: object) -> str:
    """Return the text of a page in which links to files that are no pages are plain text."""
    folder = (ROOT / page.file.src_uri).parent
    on_site = {file.src_uri for file in files}

    def shown(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = (folder / target).resolve()
        is_plain = path.exists() and path.relative_to(ROOT).as_posix() not in on_site
        return match[1] if is_plain else match[0]

    # Code stays as it is: the text between two blocks is at the even places.
    parts = re.split(f"({CODE.pattern})", markdown, flags=CODE.flags)
    return "".join(
        part if number % 2 else LINK.sub(shown, part) for number, part in enumerate(parts)
    )


def on_post_build(config: "MkDocsConfig") -> None:
    """Write the list of the versions that stand beside this one, newest first, for the selector of the theme."""
    beside = Path(config.site_dir).parent
    names = sorted(
        (page.parent.name for page in beside.glob("*/index.html")), key=_order, reverse=True
    )
    text = json.dumps([{"version": name, "title": name} for name in names], indent=2) + "\n"
    _ = (beside / "versions.json").write_text(text, encoding="utf-8")


def paths() -> Iterator[Path]:
    """Yield the files of the site relative to the root of the repository, in the order of their patterns."""
    for pattern in (*PAGES, *ASSETS):
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT)


def _is_below_docs(path: str | None) -> bool:
    return path is not None and (ROOT / "docs") in Path(path).parents


def _order(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name))
