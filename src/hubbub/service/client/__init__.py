"""The data holder's side: enrol once, then contribute to each round."""
