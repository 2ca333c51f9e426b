"""Decides which variables of the developer's environment a test may see, and where its folders lie."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.harness.sizes import CAMPAIGN_VARIABLE

COVERAGE_VARIABLE = "COVERAGE_PROCESS_CONFIG"
_FOREIGN = re.compile(
    r"""
    # Credentials and endpoints of providers.
    .*_(API_?KEY|AUTH_TOKEN|ACCESS_TOKEN|TOKEN|SECRET|BASE_URL|ACCESS_KEY_ID|ACCESS_KEY)
    |(ANTHROPIC|AWS|AZURE|GCLOUD|GEMINI|GOOGLE|MISTRAL|OLLAMA|OPENAI|OPENROUTER)_.*
    # A proxy would carry loopback requests away; a git hook would point git at another repository.
    |(HTTPS?|ALL|NO|FTP)_PROXY|GIT_.*|XDG_.*|TILLER_.*|NO_COLOR|FORCE_COLOR
    # readline sets the size of pytest's own terminal, or of none, and workers inherit it.
    |COLUMNS|LINES
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TillerDirs:
    """The folders of one test's own Tiller. Not made until something is written there."""

    config: Path
    data: Path
    runtime: Path
    home: Path

    @classmethod
    def below(cls, base: Path) -> "TillerDirs":
        """Name the four folders below `base`, shortly: a socket's path is at most 104 bytes."""
        return cls(config=base / "c", data=base / "d", runtime=base / "r", home=base / "h")

    def make(self) -> None:
        """Create all four, private to the user."""
        for path in (self.config, self.data, self.runtime, self.home):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def variables(self) -> dict[str, str]:
        """Return what a process needs to live in these folders."""
        return {
            "TILLER_CONFIG_DIR": str(self.config),
            "TILLER_DATA_DIR": str(self.data),
            "TILLER_RUNTIME_DIR": str(self.runtime),
            "HOME": str(self.home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }


def foreign_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the variables that must not reach a test.

    Coverage of children is one of them: it slows a start down, so a test has to ask for it.
    """
    return tuple(
        name
        for name in names
        if name == COVERAGE_VARIABLE or (_FOREIGN.fullmatch(name) and name != CAMPAIGN_VARIABLE)
    )


def isolated(environment: Mapping[str, str], *, dirs: TillerDirs) -> dict[str, str]:
    """Return `environment` without what is foreign, pointed at `dirs`."""
    foreign = set(foreign_names(environment))
    kept = {name: value for name, value in environment.items() if name not in foreign}
    return kept | dirs.variables()
