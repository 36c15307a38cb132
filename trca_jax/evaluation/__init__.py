"""How good a policy is, and how that is shown."""
