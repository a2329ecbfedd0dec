"""What the documents say is so."""
