"""Tables of the fleet, and every statement that reads or writes them."""
