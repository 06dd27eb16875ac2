"""Small cases that the tests of report, and the table of its messages, share."""

SECTIONS = [
    "summary",
    "input",
    "random",
    "compared",
    "good",
    "revealed",
    "effects",
    "outlook",
    "curves",
    "calibration",
    "scores",
    "prior",
    "next",
    "glossary",
]
