#!/usr/bin/env python3
"""failed_tests.py JUNIT.xml...   prints what each failed test said, its last lines where that is long"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

MOST_LINES = 60

for path in map(pathlib.Path, sys.argv[1:]):
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is None:
            continue
        said = (case.findtext("system-out") or "").splitlines()
        print(f"--- {case.get('name')} ({path.stem}) failed:")
        print("\n".join(said[-MOST_LINES:]))
