"""Core: the iteration orders of Java's and Scala's collections."""
