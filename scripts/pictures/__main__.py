"""Makes the recordings of the terminal: `python -m scripts.pictures FOLDER`."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from scripts.pictures.terminal import Recording, recorded
from tiller_server.cli.subcommands.demo import SAMPLE

HERE: Final = Path(__file__).parent
MODEL: Final = "embedded/repair"
PROMPT: Final = "The tests fail. Please repair them."
LOOK_S: Final = 1.5
DOWN: Final = "\x1b[B"


def chat(window: Recording) -> None:
    """From a failing test to a repaired one, its changes, and back."""
    window.until("/help shows")
    window.line(PROMPT)
    window.until("Trust this folder")
    window.pause(LOOK_S)
    window.line("y")
    window.until("done ·")
    window.pause(2 * LOOK_S)
    window.line("/diff")
    window.until("+++ b/")
    window.pause(2 * LOOK_S)
    window.line("/undo")
    window.until("Restored:")
    window.pause(LOOK_S)
    window.type("\x04")
    window.finish()


def permission(window: Recording) -> None:
    """Commands that nothing contains are asked about."""
    window.until("/help shows")
    window.line(PROMPT)
    window.until("Allow once")
    window.pause(2 * LOOK_S)
    window.type(DOWN)
    window.pause(LOOK_S)
    window.type("\r")
    while not window.shows("done ·"):
        window.pause(LOOK_S)
        if window.shows("Allow once"):
            window.line("y")
    window.type("\x04")
    window.finish()


SCENES: Final[Mapping[str, tuple[tuple[str, ...], str, Callable[[Recording], None]]]] = {
    "chat": (("-m", MODEL), "{}", chat),
    "permission": (("--trust", "-m", MODEL), '{"sandbox": "off"}', permission),
}
"""Arguments, settings of the user, and keys."""


def main(folder: Path) -> int:
    """Record every scene, and write it as an animated picture into a folder; gives the exit code."""
    for name, (arguments, settings, play) in SCENES.items():
        with tempfile.TemporaryDirectory() as home:
            cast = _record(Path(home), arguments, settings, play)
        picture = subprocess.run(  # noqa: S603 - our own program
            ["node", str(HERE / "render.cjs")],  # noqa: S607 - the one that `make` puts first
            input=cast,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        path = folder / f"terminal-{name}.svg"
        _ = path.write_text(picture, encoding="utf-8")
        _ = sys.stdout.write(f"{path}  {len(picture.encode()):,} bytes\n")
    return 0


def _record(
    home: Path, arguments: tuple[str, ...], settings: str, play: Callable[[Recording], None]
) -> str:
    """Return the recording of a scene in a copy of the sample project.

    Raises:
        FileExistsError: The folder of the copy is taken.
    """
    config = home / ".config" / "tiller"
    config.mkdir(parents=True)
    _ = (config / "settings.json").write_text(settings, encoding="utf-8")
    # Its path is seen in the pictures.
    project = Path(tempfile.gettempdir()) / "invoice"
    _ = shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    # No program of the checkout: the sample is tested with what Python brings.
    env = {"HOME": str(home), "PATH": os.defpath, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    argv = [str(Path(sys.executable).with_name("tiller")), *arguments]
    try:
        with recorded(argv, cwd=project, env=env) as window:
            play(window)
            return window.cast()
    finally:
        shutil.rmtree(project)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
