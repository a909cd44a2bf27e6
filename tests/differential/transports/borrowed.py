"""The modules of other nets that this one builds on. Each of them has a `cases` of its own."""
import importlib.util, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "program")]


def borrowed(name):
    path = os.path.join(HERE, "..", name)
    sys.path.insert(0, path)
    try:
        spec = importlib.util.spec_from_file_location(name, f"{path}/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(path)
        sys.modules.pop("cases", None)
    return module


fates, frames = borrowed("fates"), borrowed("frames")
