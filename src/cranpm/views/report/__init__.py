"""One self-contained HTML file about a forecast or a verification, for reading, mailing and printing."""

from cranpm.views.report.write import write_report

__all__ = ["write_report"]
