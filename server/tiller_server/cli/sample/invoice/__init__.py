"""Adds up invoices."""

from invoice.document import Invoice
from invoice.items import Item

__all__ = ["Invoice", "Item"]
