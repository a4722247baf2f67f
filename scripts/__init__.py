"""Commands behind the make targets."""
