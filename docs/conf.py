"""Configuration of the documentation site: `make site`; in `make lint`, warnings are errors."""

import sys
from pathlib import Path

import separatrix

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "Separatrix"
version = release = separatrix.__version__
copyright = "the Separatrix developers, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "generated", "mathml", "offline"]
exclude_patterns = ["_build"]
highlight_language = "text"
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
default_role = "code"  # docstrings write names in single backquotes
maximum_signature_line_length = 70
add_module_names = False

html_theme = "furo"
html_title = "Separatrix"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
