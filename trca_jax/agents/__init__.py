"""Text to and from messages: what an agent is shown and how its answer is read."""
