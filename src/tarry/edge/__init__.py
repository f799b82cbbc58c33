"""The leaves through which the world reaches the app; they know only the app."""
