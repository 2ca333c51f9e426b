"""Totals of an invoice."""

from decimal import Decimal

CENT = Decimal("0.01")


def line_total(item):
    """Return the amount of a line with its tax."""
    gross = item.price * item.count * (1 + item.tax)
    return (gross - item.discount).quantize(CENT)


def total(items):
    """Return the amount of an invoice with tax, in cents."""
    return sum((line_total(item) for item in items), Decimal(0))
