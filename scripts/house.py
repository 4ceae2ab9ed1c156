#!/usr/bin/env python3
"""The house of the sources: which folder stands on which floor, and whether files keep to it.

    scripts/house.py            prints the house as a table and fails on what breaks its rules
    scripts/house.py --circles  also names the files of each circle

Rules: a file includes headers of its own folder and of lower floors, never of a higher one; folders do not include
each other in a circle; files of one folder call each other in circles of few files at most; a folder is small
enough to know; monitors and ready-made hooks see a trainer by its view; only src/parallel knows of operators; the
companion models/ includes nothing of src/. Calls
are found by their names: a file needs another one if it uses a function that the other one defines and that is not
static.
"""
import collections
import os
import re
import sys

# The floors, from below. A folder that is not listed belongs to the nearest one above it that is.
FLOORS = [
    ["src/base", "src/base/cache", "src/base/number", "src/base/process"],
    ["src/tensor", "src/text"],
    ["src/registry"],
    ["src/graph", "src/ops", "src/ops/sequences"],
    ["src/handlers", "src/handlers/plan", "src/handlers/cpu", "src/handlers/cpu/vector",
     "src/handlers/cpu/elementwise", "src/handlers/cpu/product", "src/handlers/cpu/kernels",
     "src/handlers/cpu/kernels/convolution",
     "src/handlers/cpu/run", "src/handlers/device", "src/handlers/device/code", "src/handlers/device/run",
     "src/handlers/debug", "src/handlers/null", "src/handlers/reference", "src/handlers/source"],
    ["src/data", "src/data/block", "src/data/cache", "src/data/csv", "src/data/files", "src/data/kinds", "src/data/read", "src/data/table", "src/data/tokens", "src/network", "src/network/layers",
     "src/onnx", "src/onnx/ml", "src/onnx/nodes", "src/onnx/spatial", "src/onnx/wire", "src/persistence", "src/eager"],
    ["src/optim", "src/metrics"],
    ["src/hooks/when"],
    ["src/hooks"],
    ["src/trainer"],
    ["src/journal"],
    ["src/show"],
    ["src/train"],
    ["src/runs/parts", "src/runs/rules"],
    ["src/runs", "src/infer"],
    ["src/infer/export", "src/hooks_ready"],
    ["src/control"],
    ["src/loop"],
    ["src/parallel/workers"],
    ["src/parallel/collective"],
    ["src/parallel"],
    ["src/monitors", "src/monitors/http", "src/monitors/runs", "src/monitors/serve", "src/monitors/web",
     "src/monitors/web/inspect"],
    ["src/environment"],
    ["models", "models/tokenizer/text"],
    ["models/gguf"],
    ["models/architectures", "models/onnx", "models/tokenizer", "models/tokenizer/gguf", "models/tokenizer/read"],
    ["models/import", "models/texts"],
    ["models/export"],
    ["cli/config", "cli/config/data", "cli/config/start"],
    ["cli/texts"],
    ["cli/names", "cli/plot", "cli/generate", "cli/predict", "cli/data", "cli/runs", "cli/inspect"],
    ["cli/eval", "cli/mcp", "cli/mcp/tools", "cli/openai"],
    ["cli"],
    ["cli/finetune"],
]
# Folders of one floor do not know each other, but for these, and for folders within one: src/data and src/data/read.
BESIDE = {("src/ops", "src/graph"), ("src/graph", "src/ops"), ("src/ops/sequences", "src/graph")}
# Public headers: the lowest folder of src/ whose files may include each.
HEADERS = {"base": "src/base", "tensor": "src/base", "text": "src/text", "registry": "src/text", "plugin": "src/base", "graph": "src/graph",
           "handler": "src/handlers", "eager": "src/eager", "data": "src/data", "files": "src/data", "picture": "src/data", "sound": "src/data", "text_files": "src/data", "table": "src/data",
           "split": "src/data", "network": "src/network", "onnx": "src/onnx",
           "training": "src/optim", "optimisers": "src/optim", "hooks": "src/optim", "operator": "src/optim", "rules": "src/optim",
           "replay": "src/runs", "monitor": "src/monitors", "environment": "src/monitors", "sigma": "cli/config",
           "tokenizer": "models", "models": "models", "chats": "models",
           "text_data": "models"}
LARGEST_CIRCLE = 6
# Who stands outside sees a trainer by its view, not by its struct; and whoever has one worker knows of no operator.
INSIDE, OUTSIDE = "src/trainer/trainer.h", ("src/monitors", "src/hooks_ready")
# Who makes a trainer, prepares it and runs it sees the struct itself; all others take groups of it.
STRUCT, STRUCT_FOLDERS = "src/trainer/trainer_struct.h", ("src/trainer/", "src/train/", "src/loop/")
OPERATOR = re.compile(r"(?:\bsharing(?:\.|->)|_sharing_of\((?:[^()]|\([^()]*\))*\)->)parallel\b")
OPERATORS_FOLDER, LAUNCHER = "src/parallel/", "src/parallel/collective/launcher.h"
# The companion library sees what any user sees: public headers and its own.
COMPANION = "models"
MOST_FILES, MOST_LINES = 25, 6000
# A file for each layer, for each operation: as many as there are.
COLLECTIONS = ["src/network/layers", "src/ops"]

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|.', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
PUBLIC_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]sigma/(\w+)\.h[">]', re.M)
NAME_BEFORE_PARENTHESIS = re.compile(r"\(?\b([A-Za-z_]\w*)\)?\s*\(")


def sources(root):
    for folder in ("src", "cli", COMPANION):
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(where, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def folder_of(path, folders):
    folder = os.path.dirname(path)
    while folder not in folders:
        folder = os.path.dirname(folder)
        if not folder:
            sys.exit("house: '%s' is on no floor; add its folder to FLOORS in scripts/house.py" % path)
    return folder


def room_of(folder):
    return "/".join(folder.split("/")[:2])


def definitions(text):
    """(name, is static) of each function: in our format its body begins with a brace at the beginning of a line."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line != "{":
            continue
        start = number
        while start > 0 and lines[start - 1] and lines[start - 1][0] not in "}#/" and lines[start - 1][-1] not in ";/":
            start -= 1
        head = " ".join(lines[start:number])
        found = NAME_BEFORE_PARENTHESIS.search(head)
        if found:
            yield found.group(1), head.startswith("static")


class House:
    def __init__(self, root):
        self.floor = {folder: number for number, row in enumerate(FLOORS) for folder in row}
        self.root = root
        self.text = {path: read(root, path) for path in sources(root)}
        self.folder = {path: folder_of(path, self.floor) for path in self.text}
        self.problems = []

    def includes(self):
        """(file, header, folder of the header) of each include of our own internal headers."""
        for path, text in self.text.items():
            for name in INCLUDE.findall(text):
                for header in map(os.path.normpath, (os.path.join("src", name), os.path.join(os.path.dirname(path), name),
                                                     os.path.join("cli", name), os.path.join(COMPANION, name))):
                    if header in self.folder:
                        yield path, header, self.folder[header]
                        break

    def check_includes(self):
        needs = collections.defaultdict(set)
        for path, header, folder in self.includes():
            own = self.folder[path]
            if self.floor[folder] > self.floor[own]:
                self.problems.append("%s includes %s of a higher floor" % (path, header))
            if self.floor[folder] == self.floor[own] and room_of(folder) != room_of(own) and (own, folder) not in BESIDE:
                self.problems.append("%s includes %s, which stands beside it" % (path, header))
            if room_of(own).startswith(COMPANION) and not room_of(folder).startswith(COMPANION):
                self.problems.append("%s includes %s; the companion stands on public headers alone" % (path, header))
            if folder != own:
                needs[own].add(folder)
        for circle in circles(needs):
            if not all((a, b) in BESIDE for a in circle for b in needs[a] & set(circle)):
                self.problems.append("these folders include each other in a circle: " + ", ".join(sorted(circle)))

    def check_public_headers(self):
        """Public headers are included by each other and by sources as if they lay in their folders."""
        own, texts = dict(self.folder), dict(self.text)
        for path in (place + name for place in ("include/sigma/", COMPANION + "/include/sigma/")
                     for name in sorted(os.listdir(os.path.join(self.root, place)))):
            name = os.path.basename(path)
            own[path], texts[path] = HEADERS.get(name[:-2]), read(self.root, path)
            if own[path] is None:
                sys.exit("house: '%s' is on no floor; add it to HEADERS in scripts/house.py" % path)
        for path, text in texts.items():
            for name in PUBLIC_INCLUDE.findall(text):
                folder = HEADERS[name]
                if self.floor[folder] > self.floor[own[path]]:
                    self.problems.append("%s includes sigma/%s.h of a higher floor" % (path, name))
                if (self.floor[folder] == self.floor[own[path]] and folder == "src/" + name and
                        room_of(folder) != room_of(own[path]) and (own[path], folder) not in BESIDE):
                    self.problems.append("%s includes sigma/%s.h, which stands beside it" % (path, name))

    def check_view(self):
        includes = collections.defaultdict(set)
        for path, header, _ in self.includes():
            includes[path].add(header)

        def reaches(path, target, seen):
            new = includes[path] - seen
            seen |= new
            return target in seen or any(reaches(header, target, seen) for header in new)

        for path, text in self.text.items():
            if path.startswith(OUTSIDE) and reaches(path, INSIDE, set()):
                self.problems.append("%s sees %s; src/trainer/view.h is for it" % (path, INSIDE))
            if not path.startswith(STRUCT_FOLDERS) and reaches(path, STRUCT, set()):
                self.problems.append("%s sees %s; groups of it are in %s" % (path, STRUCT, INSIDE))
            if not path.startswith(OPERATORS_FOLDER) and (OPERATOR.search(text) or any(
                    header.startswith(OPERATORS_FOLDER) and header != LAUNCHER for header in includes[path])):
                self.problems.append("%s looks at a trainer's operator; strategy.h is for it" % path)

    def calls(self):
        """Which files each file needs, within its folder; a function of a higher floor is a problem."""
        defined, statics, needs = {}, collections.defaultdict(set), collections.defaultdict(set)
        for path, text in self.text.items():
            for name, is_static in definitions(text):
                if is_static:
                    statics[path].add(name)
                else:
                    defined[name] = path
        for path, text in self.text.items():
            words = {m.group() for m in TOKEN.finditer(text) if m.group()[0].isalpha() or m.group()[0] == "_"}
            for name in words - statics[path]:
                other = defined.get(name)
                if not path.endswith(".c") or not other or other == path:
                    continue
                if name.startswith("sgm_") and self.floor[self.folder[other]] > self.floor[self.folder[path]]:
                    self.problems.append("%s uses %s of %s, a higher floor" % (path, name, other))
                elif self.folder[other] == self.folder[path]:
                    needs[path].add(other)
        return needs

    def largest_circles(self):
        largest = {}
        for circle in circles(self.calls()):
            folder = self.folder[circle[0]]
            largest[folder] = max(largest.get(folder, []), circle, key=len)
        return largest

    def check_circles(self, largest):
        for folder, circle in largest.items():
            if len(circle) > LARGEST_CIRCLE:
                self.problems.append("%s: %d files call each other in a circle, at most %d may: %s" %
                                     (folder, len(circle), LARGEST_CIRCLE, " ".join(map(os.path.basename, sorted(circle)))))

    def sizes(self, folder):
        files = [path for path in self.text if self.folder[path] == folder]
        return len(files), sum(self.text[path].count("\n") for path in files)

    def check_sizes(self):
        for folder in self.floor:
            files, lines = self.sizes(folder)
            if (files > MOST_FILES and folder not in COLLECTIONS) or lines > MOST_LINES:
                self.problems.append("%s: %d files with %d lines, at most %d and %d may be in one folder" %
                                     (folder, files, lines, MOST_FILES, MOST_LINES))

    def print_table(self, largest):
        print("| floor | folder | files | lines | largest circle |\n|---|---|---|---|---|")
        for number, row in reversed(list(enumerate(FLOORS))):
            for folder in row:
                print("| %d | `%s/` | %d | %d | %s |" % (number, folder, *self.sizes(folder),
                                                        len(largest.get(folder, [])) or "none"))


def circles(needs):
    """The strongly connected components of more than one node (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(needs.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(stack[at:])
            del stack[at:]

    sys.setrecursionlimit(10000)
    for node in sorted(needs):
        if node not in index:
            visit(node)
    return found


def main():
    house = House(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    largest = house.largest_circles()
    house.check_includes()
    house.check_public_headers()
    house.check_circles(largest)
    house.check_sizes()
    house.check_view()
    house.print_table(largest)
    if "--circles" in sys.argv[1:]:
        for folder, circle in sorted(largest.items()):
            print("%s: %s" % (folder, " ".join(map(os.path.basename, sorted(circle)))))
    for problem in house.problems:
        print("house: " + problem, file=sys.stderr)
    return 1 if house.problems else 0


if __name__ == "__main__":
    sys.exit(main())
