"""From tasks to episodes, from episodes to judged batches and token rows."""
