"""The in-tree plugins, one file each; `registry.py` says which name lives where.

Modules whose name begins with an underscore are shared by several plugins. `course/` holds those that the course
builds. A plugin imports from `labkit.framework` and `labkit.objects` only.
"""
