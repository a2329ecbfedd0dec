"""Core: in which order Java and Scala iterate."""
