"""Shell: messages about findings that open and close, sent to other systems."""
