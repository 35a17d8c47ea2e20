"""The explorer's JavaScript and style sheets, inlined into static pages without a build step.

A page names the entry modules it needs. `script` collects the modules that they import, wraps each in a
function that returns its exports, and concatenates them in the order of their imports. The modules use a
small part of the module syntax, which the patterns below read: named imports, and exported declarations.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

STATIC = files("separatrix").joinpath("web", "static")
CHART_MODULE, CHART_LIBRARY = "chart.js", "uplot.js"

_IMPORT = re.compile(r'^import (?:\{([^}]*)\} from )?"[./\w]*/([\w-]+\.js)";$', re.MULTILINE)
_REEXPORT = re.compile(r'^export \* from "[./\w]*/([\w-]+\.js)";$', re.MULTILINE)
_DECLARATION = re.compile(r"^export ((?:async )?(?:function|const|let|class) (\w+))", re.MULTILINE)
_EXPORT_LIST = re.compile(r"export\{([^}]*)\};?\s*$")  # as minified libraries end


def script(*entries: str) -> str:
    """Return one classic script with the entry modules and everything they import."""
    order: list[str] = []
    for entry in entries:
        _add_module(entry, order)
    # uPlot is a classic script that defines a global, so it stays outside of the function around the modules.
    library = read_static(f"vendor/{CHART_LIBRARY}") if CHART_MODULE in order else ""
    body = "\n".join(_wrap_module(name) for name in order)
    return f'{library}\n(() => {{\n"use strict";\nconst modules = {{}};\n{body}\n}})();\n'


def script_hash(text: str) -> str:
    """Return the source expression that allows exactly this inline script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def read_static(path: str) -> str:
    """Return the text of a file below the explorer's static folder."""
    return STATIC.joinpath(*path.split("/")).read_text("utf-8")


@cache
def read_ramps() -> dict[str, list[str]]:
    """Return the colour ramps of maps, 256 CSS colours each, from the table in ramps.js."""
    table = json.loads(read_static("js/ramps.js").partition("RAMPS = ")[2].rstrip().removesuffix(";"))
    return {name: [f"#{color}" for color in re.findall(".{6}", digits)] for name, digits in table.items()}


def _read_module(name: str) -> str:
    folder = "js" if STATIC.joinpath("js", name).is_file() else "vendor"
    return read_static(f"{folder}/{name}")


def _add_module(name: str, order: list[str]) -> None:
    """Append a module after the modules it imports; modules of the explorer import each other in no cycle."""
    text = _read_module(name)
    for module in (*(match[2] for match in _IMPORT.finditer(text)), *_REEXPORT.findall(text)):
        if module not in order:
            _add_module(module, order)
    if name not in order:
        order.append(name)


@cache
def _wrap_module(name: str) -> str:
    text = _read_module(name)
    exports = [match[2] for match in _DECLARATION.finditer(text)]
    exports += [f"...modules[{json.dumps(module)}]" for module in _REEXPORT.findall(text)]
    if export_list := _EXPORT_LIST.search(text):
        exports += [_rename(part, reverse=True) for part in export_list[1].split(",")]
    text = _IMPORT.sub(_destructure, text)
    for pattern, replacement in ((_REEXPORT, ""), (_DECLARATION, r"\1"), (_EXPORT_LIST, "")):
        text = pattern.sub(replacement, text)
    return f"modules[{json.dumps(name)}] = (() => {{\n{text}\nreturn {{ {', '.join(exports)} }};\n}})();"


def _destructure(match: re.Match[str]) -> str:
    if match[1] is None:
        return ""
    names = ", ".join(_rename(part) for part in match[1].split(",") if part.strip())
    return f"const {{ {names} }} = modules[{json.dumps(match[2])}];"


def _rename(part: str, reverse: bool = False) -> str:
    """Return `a as b` in the notation of object literals: `a: b`, or `b: a` for an export.

    >>> _rename("h"), _rename("a as h"), _rename("a as h", reverse=True)
    ('h', 'a: h', 'h: a')
    """
    name, _, alias = (word.strip() for word in part.partition(" as "))
    if not alias:
        return name
    return f"{alias}: {name}" if reverse else f"{name}: {alias}"
