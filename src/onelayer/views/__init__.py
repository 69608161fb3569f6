"""Views: figures, the report, pages and terminal charts. They show results and compute none."""
