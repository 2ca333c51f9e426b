"""Every editor that is known well enough to be imitated, and what sets the rarer ones apart."""

from dataclasses import replace
from typing import Final

from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_lenient import KAKOUNE, SUBLIME, ZED
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, VSCODE, Json, Profile

_SHOWN = {"messageActionItem": {"additionalPropertiesSupport": True}}

NEOVIM_0_7: Final = replace(
    NEOVIM_0_11,
    version="0.7.2",
    # Nothing of encodings: positions are in UTF-16.
    capabilities={
        **{name: one for name, one in NEOVIM_0_11.capabilities.items() if name != "general"},
        "workspace": {
            name: one
            for name, one in NEOVIM_0_11.capabilities["workspace"].items()
            if name != "didChangeWatchedFiles"
        },
    },
)

NEOVIM_NIGHTLY: Final = replace(
    NEOVIM_0_11,
    version="0.13.0-dev",
    capabilities={
        **NEOVIM_0_11.capabilities,
        "workspace": {
            **NEOVIM_0_11.capabilities["workspace"],
            "workspaceEdit": {
                "resourceOperations": ["create", "rename", "delete"],
                "changeAnnotationSupport": {"groupsOnLabel": False},
            },
            "codeLens": {"refreshSupport": True},
            "textDocumentContent": {"dynamicRegistration": True},
        },
    },
)

EGLOT_NEW: Final = replace(
    EGLOT,
    version="1.19",
    capabilities={
        **EGLOT.capabilities,
        "general": {"positionEncodings": ["utf-32", "utf-8", "utf-16"]},
        "window": {
            "showDocument": {"support": True},
            "showMessage": _SHOWN,
            "workDoneProgress": True,
        },
    },
    answers_anyway=frozenset(),
)

EVERY: Final[dict[str, Profile]] = {
    "VS Code": VSCODE,
    "Neovim 0.7": NEOVIM_0_7,
    "Neovim 0.11": NEOVIM_0_11,
    "Neovim nightly": NEOVIM_NIGHTLY,
    "Helix": HELIX,
    "eglot 1.9": EGLOT,
    "eglot 1.19": EGLOT_NEW,
    "Sublime": SUBLIME,
    "Kakoune": KAKOUNE,
    "Zed": ZED,
}


class OneDialog:
    """Helix's prompt: a second question takes the place of the first, which is never answered."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.replaced: list[Json] = []
        """Questions that nobody saw to their end."""
        self._open: tuple[Json, Reply] | None = None

    def __call__(self, params: Json, reply: Reply) -> None:
        self.asked.append(params)
        if self._open is not None:
            self.replaced.append(self._open[0])
        self._open = (params, reply)

    def press(self, title: str) -> None:
        """Press a button of the dialog that is open."""
        assert self._open is not None, "no dialog is open"
        (params, reply), self._open = self._open, None
        reply(next(one for one in params["actions"] if one["title"] == title))

    def covered_by_another_server(self) -> None:
        """Let a question of another server take the place of the open one."""
        assert self._open is not None, "no dialog is open"
        self.replaced.append(self._open[0])
        self._open = None


def takes_only_work_done(value: Json) -> bool:
    """Tell whether Helix can read a value of `$/progress`; all others are logged as errors and dropped."""
    return value.get("kind") in {"begin", "report", "end"}
