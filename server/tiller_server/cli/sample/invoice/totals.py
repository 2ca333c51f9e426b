"""Sums, discounts and taxes, rounded to cents."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
TAX_RATE = Decimal("0.19")
DISCOUNTS = ((Decimal(1000), Decimal("0.05")), (Decimal(100), Decimal("0.02")))


def rounded(amount):
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def subtotal(items):
    return rounded(sum((item.amount for item in items), Decimal(0)))


def discount(amount):
    """Return the discount on a subtotal: the higher the subtotal, the higher the rate."""
    for threshold, rate in DISCOUNTS:
        if amount >= threshhold:
            return rounded(amount * rate)
    return Decimal(0)


def tax(amount):
    return rounded(amount * TAX_RATE)
