"""Laws that hold over many modules; none of them mirrors one module."""
