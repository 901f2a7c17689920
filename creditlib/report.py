"""Show runs on one page: rewards over training, held-out results, and where the credit went.

    python -m creditlib.report runs/*                       # writes report.html
    python -m creditlib.report runs/a runs/b --out ab.html
    python -m creditlib.report runs/* --figures figures     # PNG figures as well (needs creditlib[report])

The page is one file and loads nothing. Runs that differ only in the seed become one curve. Runs that are
still going, or were stopped, are shown as far as they have come. docs/report.md says more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from creditlib import __version__
from creditlib.analysis.contents import gather
from creditlib.analysis.figures import require_matplotlib, save_figures
from creditlib.analysis.page import render
from creditlib.analysis.runs import find_runs
from creditlib.cli import BAD_INPUT
from creditlib.trainer.files import write_atomically
from creditlib.types import CreditlibError


def report(
    folders: Sequence[str | Path],
    out: str | Path = "report.html",
    *,
    figures: str | Path | None = None,
    window: int = 10,
    responses: int = 50,
) -> Path:
    """Write the page, and return where it is.

    Args:
        folders: run folders; what is no run among them is told on stderr and left out.
        out: the page.
        figures: a folder for PNG figures; None: none.
        window: trailing means are over this many steps.
        responses: at most this many responses of the ledgers, shared among the runs.

    Raises:
        CreditlibError: no run among `folders`, nowhere to write, or figures without matplotlib.
    """
    if figures is not None:
        require_matplotlib()
    runs, others = find_runs(folders)
    for path in others:
        print(f"{path} is not a run's folder and is left out", file=sys.stderr)
    contents = gather(runs, window=window, responses=responses)
    page = Path(out)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CreditlibError(f"--out {page}: cannot make its folder ({error.strerror})") from error
    write_atomically(page, render(contents, f"creditlib {__version__}, {datetime.now():%Y-%m-%d %H:%M}"))
    if figures is not None:
        save_figures(contents, Path(figures))
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code: 0, or 2 after an error that the reader can mend."""
    about, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "python -m creditlib.report",
        description=about,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", help="folders of runs, as in runs/*")
    parser.add_argument("--out", default="report.html", help="the page (default: %(default)s)")
    parser.add_argument("--figures", metavar="DIR", help="write PNG figures there too")
    parser.add_argument(
        "--window", type=_positive, default=10, help="steps of a trailing mean (default: %(default)s)"
    )
    parser.add_argument(
        "--responses",
        type=_positive,
        default=50,
        help="at most this many responses of the ledgers (default: %(default)s)",
    )
    options = vars(parser.parse_args(arguments))
    try:
        page = report(options.pop("runs"), **options)
    except CreditlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    print(f"the report is in {page}")
    if options["figures"]:
        print(f"the figures are in {options['figures']}")
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
