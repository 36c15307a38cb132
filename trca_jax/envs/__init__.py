"""Text worlds. They know neither models nor credit."""
