"""What travels between the parties: signed records, messages, problems, and HTTP with patience."""
