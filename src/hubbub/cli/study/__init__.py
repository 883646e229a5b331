"""The commands of `hubbub study`, one module each: the analyst's side of a study between parties."""
