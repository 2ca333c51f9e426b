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
CTRL_D: Final = "\x04"


def chat(recording: Recording) -> None:
    """Record a repair, its changes, and the undo."""
    window = recording.window
    _ = window.until("/help shows")
    recording.line(PROMPT)
    _ = window.until("Trust this folder")
    recording.pause(LOOK_S)
    recording.line("y")
    _ = window.until("done ·")
    recording.pause(2 * LOOK_S)
    recording.line("/diff")
    _ = window.until("+++ b/")
    recording.pause(2 * LOOK_S)
    recording.line("/undo")
    _ = window.until("Restored:")
    recording.pause(LOOK_S)
    window.type(CTRL_D)
    _ = window.end()


def permission(recording: Recording) -> None:
    """Record a repair whose commands are not contained, so that each is asked about."""
    window = recording.window
    _ = window.until("/help shows")
    recording.line(PROMPT)
    _ = window.until("Allow once")
    recording.pause(2 * LOOK_S)
    window.type(DOWN)
    recording.pause(LOOK_S)
    window.type("\r")
    while "done ·" not in window.until(lambda seen: "Allow once" in seen or "done ·" in seen):
        recording.pause(LOOK_S)
        if "Allow once" in window.picture:
            recording.line("y")
    recording.pause(LOOK_S)
    window.type(CTRL_D)
    _ = window.end()


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
        with recorded(argv, cwd=project, env=env) as recording:
            play(recording)
            return recording.asciicast()
    finally:
        shutil.rmtree(project)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
