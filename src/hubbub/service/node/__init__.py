"""A Compute node: store, agreement, caretaker and the HTTP face."""
