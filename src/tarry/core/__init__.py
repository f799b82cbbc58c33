"""The rules of a run as pure functions: values in, values out, nothing called."""
