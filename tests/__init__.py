"""Tests, in the folders of the code that they are about, with simulated time and temporary folders."""
