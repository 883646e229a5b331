"""The Compute node and those who talk to it: signed records, store, agreement, HTTP, client library.

What a client needs (signing, canonical, records, messages, problems, outbox, web, client) imports numpy,
cryptography and httpx only.
"""
