"""Stands in for launch/train.py: copies a run that was prepared in $FAKE_RUNS to where it should be.

It waits while a file `hold` is there, and fails if there is one named as the run with `.fails` behind it.
"""

import os
import shutil
import sys
import time
from pathlib import Path

arguments = dict(a.removeprefix("--config.").split("=", 1) for a in sys.argv[1:] if "=" in a)
prepared, folder = Path(os.environ["FAKE_RUNS"]), Path(arguments["workdir"])
with (prepared / "started").open("a") as file:
    file.write(folder.name + "\n")
try:
    while (prepared / "hold").exists():
        time.sleep(0.01)
except KeyboardInterrupt:
    print("Stopped after 0 iterations")
    sys.exit(130)
if (prepared / f"{folder.name}.fails").exists():
    print("error: no room on the disk\nand a last word")
    sys.exit(2)
shutil.copytree(prepared / folder.name, folder, dirs_exist_ok=True)
