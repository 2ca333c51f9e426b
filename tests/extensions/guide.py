"""The reference in docs/extensions.md, made from the docstrings of the classes that extensions use.

`python -m tests.extensions.guide` writes it.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Final

from agent_core.extensions import (
    CommandContext,
    Context,
    ExtensionApi,
    ExtensionModelList,
    ExtensionSession,
    ToolCallContext,
)
from agent_core.extensions.ui import Ui
from tests.support.harness.shared import ROOT

PAGE: Final = ROOT / "docs/extensions.md"
BEGIN: Final = "<!-- api:begin -->\n"
END: Final = "<!-- api:end -->\n"
BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS: Final[Mapping[str, tuple[type, type | None, str]]] = {
    "api": (ExtensionApi, None, "What `extension` gets"),
    "ctx": (Context, None, "Second argument of a function that listens to a point"),
    "ctx in a command": (CommandContext, Context, "All of `ctx`, and"),
    "ctx in a tool": (ToolCallContext, Context, "All of `ctx`, and"),
    "ctx.session": (ExtensionSession, None, "The stored session, for reading"),
    "ctx.models": (ExtensionModelList, None, "The models"),
    "ctx.ui": (Ui, None, "Dialogs and views"),
}
CALL: Final = "The call: its id, `output` for progress, and what the tools of the session share."


def page() -> str:
    """Return the page with the reference as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{''.join(_sections())}\n{END}{after}"


def blocks() -> list[str]:
    """Return the Python blocks of the page that are a whole extension each."""
    return [one for one in _python() if "def extension(" in one]


def unit_test() -> str:
    """Return the block that is the test of a package."""
    (block,) = [one for one in _python() if "unittest" in one]
    return block


def _python() -> list[str]:
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def _sections() -> Iterator[str]:
    for name, (shown, base, about) in SECTIONS.items():
        yield f"\n### `{name}`\n\n{about}:\n\n| Member | Description |\n| --- | --- |\n"
        for member in sorted(vars(shown) if base else dir(shown)):
            if member.startswith("_"):
                continue
            text = (inspect.getdoc(getattr(shown, member)) or CALL).split("\n", 1)[0]
            cell = text.replace("|", "\\|")
            yield f"| `{member}` | {cell} |\n"


if __name__ == "__main__":
    _ = PAGE.write_text(page(), encoding="utf-8")
