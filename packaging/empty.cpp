// A shared library needs a source of its own; the rooms' archives make up the rest.
