"""What every room may use, and what knows no room: errors, tables, numbers as text, files, the machine, budgets, checks."""
