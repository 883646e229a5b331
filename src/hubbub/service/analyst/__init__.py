"""The analyst's side of a study on real Computes."""
