"""The paper's table and figures, and ours: frozen config in, rows out."""
