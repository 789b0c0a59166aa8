"""``python -m pictures`` in the folder ``docs``: draw all pictures, or those that are named."""

import sys

from pictures import draw_pictures

draw_pictures(sys.argv[1:])
