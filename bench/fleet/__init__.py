"""A day of pushes of many repositories, replayed in virtual time against the tables of the fleet."""
