"""The benchmarks, in the order in which they run."""

from bench import (
    acknowledged,
    cold_start,
    memory,
    providers,
    request_sent,
    search,
    streaming,
    tool_loop,
    tools,
)
from bench.kit import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = (
    cold_start.BENCHMARK,
    acknowledged.BENCHMARK,
    request_sent.BENCHMARK,
    streaming.BENCHMARK,
    providers.BENCHMARK,
    tool_loop.BENCHMARK,
    tools.BENCHMARK,
    search.BENCHMARK,
    memory.BENCHMARK,
)
