"""``python -m pictures`` in the folder ``docs``: draw all pictures, those that are named, or those of the README."""

import sys

from pictures import draw_for_readme, draw_pictures

if sys.argv[1:] == ["readme"]:
    draw_for_readme()
else:
    draw_pictures(sys.argv[1:])
