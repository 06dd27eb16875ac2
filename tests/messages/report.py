"""Bad input of report, and the whole message that it gets."""

from pathlib import Path

from unbag.cli._options import check_page
from unbag.report import Page, write_page

MESSAGES = [
    (
        lambda: check_page(Path("report.pdf"), force=False),
        "A page must be named .html: report.pdf was given. Choose such a name.",
    ),
    (
        lambda: write_page(Page("", "", []), "/nowhere/at/all.html"),
        "An output must go to a folder that exists: /nowhere/at does not. Make it first.",
    ),
]
