"""Tasks: their format, repositories, temptations, and the check both ways."""
