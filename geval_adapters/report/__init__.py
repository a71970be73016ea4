"""Results as terminal tables and as one self-contained page."""

from .agreement import LEVELS, agreement_plots, agreement_sections
from .audit import audit_page, audit_sections
from .labels import apart_section, estimate_sections, gate_junit, gate_line, gate_markdown, gate_sections
from .page import page
from .ranking import ranking_sections
from .sections import Card, Section
from .summary import Summary, cost, estimates_table, print_rationales, ratings_table, summary_table, tokens
from .terminal import plain, print_sections, table

__all__ = [
    "LEVELS",
    "Card",
    "Section",
    "Summary",
    "agreement_plots",
    "agreement_sections",
    "apart_section",
    "audit_page",
    "audit_sections",
    "cost",
    "estimate_sections",
    "estimates_table",
    "gate_junit",
    "gate_line",
    "gate_markdown",
    "gate_sections",
    "page",
    "plain",
    "print_rationales",
    "print_sections",
    "ranking_sections",
    "ratings_table",
    "summary_table",
    "table",
    "tokens",
]
