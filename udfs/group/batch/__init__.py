"""Core: one group in one batch: its due events, its output, its findings.

Each class adds to the one before: ``GroupView`` (``state/view.py``) reads the group, ``GroupHistory`` writes the
journal, ``GroupSessions`` the sessions of members, ``GroupContext`` all else that events change.
"""
