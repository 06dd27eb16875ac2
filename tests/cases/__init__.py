"""Worlds, files and helpers that several test modules share; no test imports another."""
