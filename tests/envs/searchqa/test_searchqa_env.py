"""The environment: both protocols, what ends an episode, what it earns, and a search engine that fails."""

from retrieval_servers import *  # noqa: F403
