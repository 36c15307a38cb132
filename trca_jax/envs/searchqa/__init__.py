"""SearchQA: questions that are answered with a search engine."""
