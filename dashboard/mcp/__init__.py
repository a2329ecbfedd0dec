"""Dashboard: the tables for agents, by the Model Context Protocol: tools, resources and prompts that only read."""
