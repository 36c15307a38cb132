"""Moving the policy: losses, the compiled update, the warm start, the loop and its checkpoints."""
