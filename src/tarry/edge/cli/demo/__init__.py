"""The demo: Tarry under attack, told as a story."""
