"""One small implementation of each of hubbub's five seams; docs/extending/ shows the same files with explanations."""
