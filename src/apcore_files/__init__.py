"""Python files as apcore registries: a folder of modules, or one file of modules or typed functions.

- ``app``: the registry of one file, `app.py` or `app.py:registry`
- ``app_name``: how such a file is written
- ``budget``: how long the import of a file may take
- ``folder``: the registry of a folder, in which each file brings its tools in and takes them out
- ``functions``: typed functions as apcore modules
- ``importing``: imports that end, one way or the other
- ``internals``: what we change inside apcore
- ``module_runs``: modules that fail alone, whatever they raise
- ``watching``: a folder that is followed
"""
