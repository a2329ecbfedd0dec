"""What a group did, decided again: its history as events, through the coordinator that decides live."""
