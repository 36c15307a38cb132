"""Downloads WebShop's data of 1,000 products, checked by content; call it again to go on after a break.

python launch/fetch_webshop.py --out=DIR [--mirror=URL]      then: --config.env.data=DIR
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from absl import flags

from launch.command import OUT, console, parse_flags, run
from trca_jax.envs.webshop.download import SMALL, fetch

_MIRROR = flags.DEFINE_string("mirror", None, "Address of a folder that has the files, tried before all others.")


def main() -> int:
    parse_flags()
    if not OUT.value:
        raise ValueError("--out is missing: the folder that receives the files")
    files = SMALL
    if mirror := _MIRROR.value:
        own = (f"{mirror.rstrip('/')}/{file.name}" for file in files)
        files = [dataclasses.replace(file, urls=(url, *file.urls)) for file, url in zip(files, own, strict=True)]
    fetch(files, Path(OUT.value), console.print)
    return 0


if __name__ == "__main__":
    run(main)
