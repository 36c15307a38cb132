"""TRCA: transition-wise rubric credit assignment for long-horizon LLM agents, in JAX."""
