"""Laws over many modules: no mirror of one."""
