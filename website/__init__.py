"""Builds the documentation as a site, and checks it.

What the site needs is here and not in the settings of a theme, so that the theme can be replaced:

- `sources`: the pages as they are written, their order in the menu, their links and anchors
- `formulas`: LaTeX of docstrings as text, so that no page loads a script to set it
- `registries`: dicts that code builds, as lists of their names
- `pictures`: light and dark ones for the toggle of the site
- `build`: every public name is written out, the generator is called, `llms.txt` is added
- `pages`: the built HTML: nothing is loaded from outside, every link and anchor leads somewhere
- `llms`: an index of the site, and all pages in one file, as plain text

`python -m website` builds into `site/`.
"""
