"""Commands for those who release the package."""
