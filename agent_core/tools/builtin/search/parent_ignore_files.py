"""Detection of ignore files above the searched folder that ripgrep misreads."""

from fnmatch import fnmatchcase

from agent_core.tools.builtin.search.ignore_files import EXCLUDE, IGNORE_FILES, ignore_text
from agent_core.tools.builtin.search.tree_walk import SearchedFolder

ANY_DEPTH = "**"


async def is_misread(place: SearchedFolder) -> bool:
    """Return whether a line of an ignore file above the folder is about a path below it.

    For such a line ripgrep (seen in 14.1) leaves out the folders between the searched one and a file: with the line
    `src/build` it takes `src/x/build` for ignored in a search of `src`, and with `src/x/build` it does not.
    Lines that are about names alone are read rightly.
    """
    steps = place.folder.relative_to(place.top).parts
    for depth in range(len(steps)):
        above = place.top.joinpath(*steps[:depth])
        for name in (*IGNORE_FILES, EXCLUDE):
            text = await ignore_text(place.files, above / name)
            if any(_reaches(line, steps[depth:]) for line in text.splitlines()):
                return True
    return False


def _reaches(line: str, steps: tuple[str, ...]) -> bool:
    """Return whether a line may be about something below a folder, given by its steps from the line's own folder."""
    pattern_text = line.strip().removeprefix("!")
    if pattern_text.startswith("#") or "/" not in pattern_text.removeprefix(f"{ANY_DEPTH}/")[:-1]:
        return False
    pattern = pattern_text.strip("/").split("/")
    for wanted, step in zip(pattern, steps, strict=False):
        if wanted == ANY_DEPTH:
            return True
        if "\\" not in wanted and not fnmatchcase(step, wanted):
            return False
    return len(pattern) > len(steps)
