"""Replay a day: `python -m bench.fleet --repositories 1000 --workers 4`."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from bench.fleet.day import FleetDay
from bench.fleet.figures import report
from bench.fleet.pushes import pushes_of_a_day
from tiller_server.fleet.limits import FleetLimits


def main() -> None:
    """Replay, and print the figures beside the arithmetic."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    _ = parser.add_argument("--repositories", type=int, default=1000)
    _ = parser.add_argument("--per-repository", type=float, default=5, help="pushes a day")
    _ = parser.add_argument("--workers", type=int, default=4, help="processes")
    _ = parser.add_argument("--sessions", type=int, default=16, help="reviews at once of a process")
    _ = parser.add_argument(
        "--written", type=int, default=10, help="write sessions and posts of one in so many changes"
    )
    _ = parser.add_argument("--seed", type=int, default=1)
    _ = parser.add_argument("--database", metavar="URL", help="an empty one [a file of SQLite]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.database or f"sqlite:///{Path(folder)}/fleet.db"
        day = FleetDay(
            url,
            workers=options.workers,
            sessions=options.sessions,
            limits=FleetLimits(per_repo=4),
            written=options.written,
        )
        pushes = pushes_of_a_day(
            options.repositories, per_repository=options.per_repository, seed=options.seed
        )
        began = perf_counter()
        result = asyncio.run(day.replay(pushes))
        _ = sys.stdout.write(
            report(
                result,
                repositories=options.repositories,
                places=options.workers * options.sessions,
                real_s=perf_counter() - began,
                size=day.database.size_bytes(),
                outcomes=day.outcomes,
            )
        )
        day.database.close()


if __name__ == "__main__":
    main()
