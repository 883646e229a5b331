"""Families of distributions that need one sum."""
