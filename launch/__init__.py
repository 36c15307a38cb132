"""The commands: flags, a config, one call."""

import os

# The tokenizers of transformers need no PyTorch; without this every start says that it is missing.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
