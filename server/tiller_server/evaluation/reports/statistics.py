"""Estimators of success over several attempts."""

from math import comb


def pass_at(k: int, *, attempts: int, passed: int) -> float | None:
    """Return the chance that at least one of k attempts passes; None with fewer than k attempts.

    The unbiased estimator of Chen et al. 2021, arXiv 2107.03374.
    """
    if attempts < k:
        return None
    return 1 - comb(attempts - passed, k) / comb(attempts, k)


def pass_hat(k: int, *, attempts: int, passed: int) -> float | None:
    """Return the chance that all of k attempts pass; None with fewer than k attempts.

    The unbiased estimator of Yao et al. 2024, arXiv 2406.12045.
    """
    if attempts < k:
        return None
    return comb(passed, k) / comb(attempts, k)
