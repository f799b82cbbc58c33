"""What each command changes in one run, one file per noun."""
