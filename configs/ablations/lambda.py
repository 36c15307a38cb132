"""λ, the share of the breakthrough reward, from 0 (the foundational reward alone) to 1 (breakthrough alone).

python launch/sweep.py --config=configs/ablations/lambda.py      over configs/alfworld.py
python launch/sweep.py --config=configs/ablations/lambda.py:webshop
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    values = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    return grid(base, "lambda", {f"λ={lam}": {"credit.trca.lam": lam} for lam in values})
