"""Two versions of the package beside each other: processor time of grouping, fuzzy and linkage.

    python -m benchmarks.compare FOLDER_OF_ONE/src FOLDER_OF_THE_OTHER/src

Each case runs in a process of its own, the versions in turn, on one core, after a warm-up that
compiles; the least of the rounds counts. Equal results are hashed: a faster version that gives
something else is not faster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

ROUNDS = 3

CASES = {
    "Search quick, 1,080 x 13, k = 3": "n, d = 1080, 13; run = lambda X: G.Search(3, "
    "effort='quick', random_state=0).fit(X).labels_",
    "MDAV, 20,000 x 10, k = 5": "n, d = 20000, 10; run = lambda X: G.MDAV(5).fit(X).labels_",
    "nearest order, 20,000 x 3, k = 5": "n, d = 20000, 3; run = lambda X: "
    "G.OrderedGrouping(5, order='nearest').fit(X).labels_",
    "fuzzy c-means, 20,000 x 8, c = 20": "n, d = 20000, 8; run = lambda X: "
    "FuzzyCMeans(20, random_state=0, max_iter=40).fit(X).cluster_centers_.round(6)",
    "linkage, 20,000 x 5": "n, d = 20000, 5; run = lambda X: "
    "link(X, X + np.random.default_rng(1).normal(0, .3, X.shape)).rank",
}

SCRIPT = """
import hashlib, json, time, warnings
import numpy as np
import tessella.grouping as G
from tessella.fuzzy import FuzzyCMeans
from tessella.risk import link
warnings.simplefilter("ignore")
{case}
X = np.random.default_rng(0).lognormal(0, 1, (n, d))
run(X[:600])
seconds = []
for _ in range(2):
    began = time.process_time()
    found = run(X)
    seconds.append(time.process_time() - began)
digest = hashlib.sha1(np.ascontiguousarray(found).tobytes()).hexdigest()[:10]
print(json.dumps([min(seconds), digest]))
"""


def measure(source: str, case: str) -> tuple[float, str]:
    """Return the seconds of one case in one version, and a hash of what it gave."""
    environment = os.environ | {"PYTHONPATH": source, "TESSELLA_CORES": "1"}
    command = [sys.executable, "-c", SCRIPT.format(case=case)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seconds, digest = json.loads(done.stdout.splitlines()[-1])
    return seconds, digest


def main() -> None:
    before, after = sys.argv[1:3]
    for name, case in CASES.items():
        rounds = [(measure(before, case), measure(after, case)) for _ in range(ROUNDS)]
        least = [min(one[side][0] for one in rounds) for side in (0, 1)]
        same = rounds[0][0][1] == rounds[0][1][1]
        row = {"seconds": least, "ratio": round(least[1] / least[0], 3), "same result": same}
        print(json.dumps({"case": name} | row), flush=True)


if __name__ == "__main__":
    main()
