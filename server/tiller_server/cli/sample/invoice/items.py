"""Items of an invoice."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Item:
    """A thing that is sold, with its price before tax."""

    name: str
    price: Decimal
    quantity: int = 1

    @property
    def amount(self):
        return self.price * self.quantity
