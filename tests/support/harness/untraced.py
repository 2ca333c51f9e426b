"""Measures what code costs where coverage is not counting its lines: that makes some of it thirty times as slow."""

import sys
import time
from collections.abc import Callable


def processor_s(work: Callable[[], object]) -> float:
    """Do it with no tracer on this thread, and give the processor time that it took, in seconds."""
    tracer = sys.gettrace()
    sys.settrace(None)
    begun = time.process_time()
    try:
        _ = work()
    finally:
        took = time.process_time() - begun
        sys.settrace(tracer)
    return took
