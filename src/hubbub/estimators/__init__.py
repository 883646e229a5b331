"""scikit-learn's face of the models: the one place where a model meets a default engine."""
