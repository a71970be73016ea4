"""Results as terminal tables and as one self-contained page."""

from .agreement import LEVELS, agreement_page, agreement_sections
from .audit import audit_page, audit_sections
from .cascade import cascade_sections
from .changes import changes_page, changes_sections
from .jury import jury_sections, jury_table
from .labels import apart_section, estimate_page, estimate_sections, gate_junit, gate_line, gate_markdown, gate_sections
from .page import Items, Kind, html_page
from .ranking import ranking_page, ranking_sections
from .rubric import RubricSums, rubric_sections
from .score import mean_of, score_page
from .sections import Card, Section, number, shown
from .summary import Summary, cost, documents_table, dollars, print_rationales, ratings_table, summary_table, tokens
from .terminal import plain, plain_lines, print_sections, table
from .tune import tuned_line, tuned_page, tuned_sections
from .unread import SHOWN, unread_lines, unread_sections, warnings_of

__all__ = [
    "LEVELS",
    "SHOWN",
    "Card",
    "Items",
    "Kind",
    "RubricSums",
    "Section",
    "Summary",
    "agreement_page",
    "agreement_sections",
    "apart_section",
    "audit_page",
    "audit_sections",
    "cascade_sections",
    "changes_page",
    "changes_sections",
    "cost",
    "documents_table",
    "dollars",
    "estimate_page",
    "estimate_sections",
    "gate_junit",
    "gate_line",
    "gate_markdown",
    "gate_sections",
    "html_page",
    "jury_sections",
    "jury_table",
    "mean_of",
    "number",
    "plain",
    "plain_lines",
    "print_rationales",
    "print_sections",
    "ranking_page",
    "ranking_sections",
    "ratings_table",
    "rubric_sections",
    "score_page",
    "shown",
    "summary_table",
    "table",
    "tokens",
    "tuned_line",
    "tuned_page",
    "tuned_sections",
    "unread_lines",
    "unread_sections",
    "warnings_of",
]
