"""Chooses how a run is shown: JSON lines, plain words in a pipe, a picture that moves on a terminal."""

import sys
import time
from collections.abc import Callable
from typing import Final

from tiller_server.cli.environment import Environment
from tiller_server.cli.terminal.run_renderer import JsonView, TextView, View
from tiller_server.cli.terminal.stdio import Output

OUT: Final = "standard output"
SIDE: Final = "standard error"


def json_view() -> View:
    """Return events for programs."""
    return JsonView(out=Output(sys.stdout, name=OUT), side=Output(sys.stderr, name=SIDE))


def text_view(
    environment: Environment, location: Callable[[], str | None], *, verbose: bool
) -> View:
    """Create what a person looks at: on a terminal it moves, in a pipe the final answer stands alone."""
    out, side = Output(sys.stdout, name=OUT), Output(sys.stderr, name=SIDE)
    shows_out, shows_side = environment.moves(sys.stdout), environment.moves(sys.stderr)
    if not (shows_out or shows_side) or not _can_render():
        return TextView(
            out=out,
            side=side,
            colour=environment.colour(sys.stderr),
            location=location,
            verbose=verbose,
        )
    from tiller_server.cli.terminal.live_markdown import LiveWords  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.live_view import LiveView, Shape  # noqa: PLC0415 - only terminals need it
    from tiller_server.cli.terminal.status_area import Screen  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.status_line import Status, frames_for  # noqa: PLC0415 - see above

    stream = sys.stdout if shows_out else sys.stderr
    colour = environment.colour(stream)
    screen = Screen(out if shows_out else side)
    return LiveView(
        screen=screen,
        status=Status(now_s=time.monotonic, frames=frames_for(stream.encoding)),
        words=LiveWords(screen, colour=colour),
        shape=Shape(
            colour=colour,
            answer=None if shows_out else out,
            verbose=verbose,
            plain_side=None if shows_side else side,
        ),
        location=location,
    )


def _can_render() -> bool:
    from tiller_server.cli.terminal.markdown_text import can_render  # noqa: PLC0415 - see above

    return can_render()
