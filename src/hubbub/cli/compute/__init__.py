"""The commands of `hubbub compute`, one module each."""
