"""The invoice itself."""

from invoice.totals import discount, subtotal, tax


class Invoice:
    """Collects items and says what they come to."""

    def __init__(self, customer):
        self.customer = customer
        self.items = []

    def add(self, item):
        self.items.append(item)
        return self

    def total(self):
        net = subtotal(self.items)
        net -= discount(net)
        return net + tax(net)

    def lines(self):
        rows = [f"{item.quantity} x {item.name}: {item.amount}" for item in self.items]
        return [f"Invoice for {self.customer}", *rows, f"Total: {self.total()}"]
