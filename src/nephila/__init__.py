"""Nephila: fast over the whole web, slow towards each single site."""
