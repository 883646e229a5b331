"""The commands of `hubbub bench`, one module each."""
