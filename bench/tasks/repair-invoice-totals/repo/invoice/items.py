"""Lines of an invoice."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Item:
    title: str
    price: Decimal
    count: int = 1
    discount: Decimal = Decimal(0)
    """Off the whole line, in currency."""
    tax: Decimal = Decimal("0.19")
