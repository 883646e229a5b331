"""All roles on one Spark cluster."""
