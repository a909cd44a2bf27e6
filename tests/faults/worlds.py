#!/usr/bin/env python3
"""Runs the test programs of the crate `worlds` that were built last: worlds.py FOLDER [SCENES]."""
import glob, os, re, subprocess, sys

newest = {}
for path in glob.glob(os.path.join(sys.argv[1], "*")):
    name = re.fullmatch(r"(worlds|desync)-[0-9a-f]{16}", os.path.basename(path))
    if name and os.access(path, os.X_OK):
        newest.setdefault(name[1], []).append(path)
failed = 0
# The library's own unit tests have the name of the scenes.
for paths in newest.values():
    for path in sorted(paths, key=os.path.getmtime)[-2:]:
        failed |= subprocess.run([path, "--quiet", *sys.argv[2:]], cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/worlds")).returncode
sys.exit(failed != 0)
