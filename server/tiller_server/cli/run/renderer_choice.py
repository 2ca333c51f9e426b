"""Chooses how a run is shown: JSON lines, plain words in a pipe, a picture that moves on a terminal."""

import sys
import time
from collections.abc import Callable
from typing import Final

from tiller_server.cli.environment import Environment
from tiller_server.cli.terminal.run_renderer import JsonRunRenderer, RunRenderer, TextRunRenderer
from tiller_server.cli.terminal.stdio import StandardStream

OUT: Final = "standard output"
SIDE: Final = "standard error"


def json_view() -> RunRenderer:
    """Return events for programs."""
    return JsonRunRenderer(
        out=StandardStream(sys.stdout, name=OUT), side=StandardStream(sys.stderr, name=SIDE)
    )


def text_view(
    environment: Environment, location: Callable[[], str | None], *, verbose: bool
) -> RunRenderer:
    """Create what a person looks at: on a terminal it moves, in a pipe the final answer stands alone."""
    out, side = StandardStream(sys.stdout, name=OUT), StandardStream(sys.stderr, name=SIDE)
    shows_out, shows_side = environment.moves(sys.stdout), environment.moves(sys.stderr)
    if not (shows_out or shows_side) or not _can_render():
        return TextRunRenderer(
            out=out,
            side=side,
            colour=environment.colour(sys.stderr),
            location=location,
            verbose=verbose,
        )
    from tiller_server.cli.terminal.live_markdown import LiveMarkdown  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.live_view import LiveView, LiveViewOptions  # noqa: PLC0415 - only terminals need it
    from tiller_server.cli.terminal.status_area import StatusArea  # noqa: PLC0415 - see above
    from tiller_server.cli.terminal.status_line import StatusLine, frames_for  # noqa: PLC0415 - see above

    stream = sys.stdout if shows_out else sys.stderr
    colour = environment.colour(stream)
    screen = StatusArea(out if shows_out else side)
    return LiveView(
        screen=screen,
        status=StatusLine(now_s=time.monotonic, frames=frames_for(stream.encoding)),
        markdown=LiveMarkdown(screen, colour=colour),
        shape=LiveViewOptions(
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
