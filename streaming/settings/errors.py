"""Shell: the error of settings, separate from the settings, which few commands need and which load slowly."""


class SettingsError(Exception):
    """Settings that cannot be used: all mistakes at once, each with its place."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
