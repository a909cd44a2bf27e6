#!/usr/bin/env python3
"""Puts all faults, switched off, into a copy of the crates: apply.py TREE. Files that do not change are not touched.
Without a tree it only says which faults the code has no place for any more."""
import os, sys
from faults import ROWS

HERE = os.path.dirname(os.path.abspath(__file__))
CRATES = os.path.join(HERE, "../../crates")


def main(tree):
    texts, bad = {"base/src/fault.rs": open(os.path.join(HERE, "switch.rs")).read()}, 0
    for folder, _, names in os.walk(CRATES):
        for name in names:
            if name.endswith(".rs"):
                path = os.path.join(folder, name)
                texts[os.path.relpath(path, CRATES)] = open(path).read()
    for row in ROWS:
        for file, old, new in row.edits:
            if texts[file].count(old) != 1:
                print(f"{row.name}: {file}: stands there {texts[file].count(old)} times: {old.strip()[:90]}")
                bad = 1
            texts[file] = texts[file].replace(old, new)
    texts["base/src/lib.rs"] = texts["base/src/lib.rs"].replace("pub mod ", "pub mod fault;\npub mod ", 1)
    for file, text in texts.items() if tree else ():
        path = os.path.join(tree, "crates", file)
        if not os.path.exists(path) or open(path).read() != text:
            open(path, "w").write(text)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
