"""Credit assignment: arrays in, advantages out. Knows nothing but JAX."""

from trca_jax.credit.methods import METHODS, Method, make
from trca_jax.credit.types import Credit, CreditBatch

__all__ = ["METHODS", "Credit", "CreditBatch", "Method", "make"]
