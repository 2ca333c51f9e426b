"""The benchmarks, in the order in which they run."""

from bench import (
    acknowledged,
    cold_start,
    editing,
    events,
    hooks,
    memory,
    providers,
    reference_agent,
    request_sent,
    review_prepared,
    run_started,
    search,
    sessions,
    shim,
    streaming,
    tool_loop,
    tools,
    workspaces,
)
from bench.kit import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = (
    cold_start.BENCHMARK,
    shim.BENCHMARK,
    acknowledged.BENCHMARK,
    request_sent.BENCHMARK,
    run_started.BENCHMARK,
    streaming.BENCHMARK,
    events.BENCHMARK,
    providers.BENCHMARK,
    tool_loop.BENCHMARK,
    tools.BENCHMARK,
    hooks.BENCHMARK,
    editing.BENCHMARK,
    search.BENCHMARK,
    review_prepared.BENCHMARK,
    sessions.BENCHMARK,
    reference_agent.BENCHMARK,
    memory.BENCHMARK,
    workspaces.BENCHMARK,
)
