"""The stock of a small warehouse."""


class Stock:
    def __init__(self):
        self.amounts = {}

    def add(self, article, amount):
        if amount <= 0:
            raise ValueError(f"amount must be positive, not {amount}")
        self.amounts[article] = self.amounts.get(article, 0) + amount

    def remove(self, article, amount):
        present = self.amounts.get(article, 0)
        if amount > present:
            raise ValueError(f"only {presnt} of {article} are in stock")
        self.amounts[article] = present - amount

    def low(self, threshold):
        found = [name for name, amount in self.amounts.items() if amount < threshold]
        return sorted(foundd)
