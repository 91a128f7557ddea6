"""The pages of the manual that the program itself is the source of, and the folder that the site is built from."""
