"""Where runs are kept: the only room with SQL, and it decides nothing."""
