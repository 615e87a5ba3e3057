"""The documentation site: `make docs` builds it, strictly, into build/docs."""

from dataclasses import fields
from importlib.metadata import version as version_of

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

project = "napari-embedding-game"
copyright = "napari-embedding-game developers"
version = release = version_of(project)

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["images"]
html_theme = "pydata_sphinx_theme"
html_title = project
html_logo = html_favicon = "../resources/icon.svg"
html_theme_options = {
    "logo": {"text": project, "alt_text": project},
    "github_url": "https://github.com/napari-embedding-game/napari-embedding-game",
    "navigation_with_keys": False,
    "show_prev_next": True,
}
html_show_sourcelink = False

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
# The tests run the notebooks; the site shows them.
nb_execution_mode = "off"

autodoc_typehints = "none"  # they stand in the docstrings
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "code"
linkcheck_anchors = False


def inline_formula(translator, node):
    """Write a formula as MathML, which browsers draw without a script."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def formula(translator, node):
    """Write a formula on lines of its own."""
    translator.body.append(f"<p>{tex2mathml(node.astext(), as_block=True)}</p>")
    raise SkipNode


def list_settings(app, what, name, settings, options, lines):
    """Explain each field of the settings in the words of the window."""
    if what == "class" and name.endswith(".Settings"):
        for each in fields(settings):
            names = ", ".join(each.metadata.get("choices", dict)())
            among = names and f" One of {names}."
            lines.append(f":param {each.name}: {each.metadata['words']}{among}")


def setup(app):
    """Tell Sphinx how formulas are written, and what settings mean."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
    app.connect("autodoc-process-docstring", list_settings, priority=900)


html_math_renderer = "mathml"
