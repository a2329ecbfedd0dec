"""Shell: files and locks on object stores and HDFS."""
