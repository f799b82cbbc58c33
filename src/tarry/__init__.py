"""Durable signals for Python."""
