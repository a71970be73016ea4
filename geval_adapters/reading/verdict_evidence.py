"""What makes a label the verdict, and what makes it something else: two tables, as those of ratings (`evidence`).

A support's group `against` is a candidate that the reply puts behind the other one.
"""

from __future__ import annotations

from .evidence import UNIONS, Rule

UNIONS_OF_VERDICTS = UNIONS | {
    "CANDIDATE": "FIRST SECOND",
    "VALUE": "FIRST SECOND THIRD TIE NEITHER SAME",
    "LABELS": "FIRST SECOND THIRD",
    "NAMED": "(?:[NOUN ANSWER LABEL]? HASH? [LEFT OPEN QUOTE]{0,3})",
    "ENDED": "[RIGHT CLOSE QUOTE]{0,3}",
    "ADVERB": "OTHER CAPITAL STOPWORD ARTICLE TOO FIT OVERALL HAVE GIVE EARN OF QUESTION CRITERION WOULD BARRED I AND"
    " OUT NOUN",
    "AFTERIT": "DOT COMMA SEMI BANG COLON CLOSE OPEN RIGHT LEFT QUOTE NL DASH STOPWORD SO BUT AND THAN TO PIPE LT BLANK"
    " IS OVERALL",
    "QUALITY": "(?: BETTER | MORE (?!OTHER{0,2} BAD) | LESS OTHER{0,2} BAD )",
    "FAULT": "(?: WORSE | LESS (?!OTHER{0,2} BAD) | MORE OTHER{0,2} BAD )",
}


class VerdictRule(Rule):
    """A rule whose values are labels."""

    UNIONS = UNIONS_OF_VERDICTS


VERDICT_BARS = (
    VerdictRule("one of both", "‹A› and ‹B› are clear", r"CANDIDATE ENDED [AND OR COMMA SLASH] NAMED CANDIDATE"),
    VerdictRule("one of both", "between ‹A› and ‹B›", r"BETWEEN NAMED CANDIDATE ENDED AND NAMED CANDIDATE"),
    VerdictRule("a heading", "‹A›: clear.\n‹B›: short.", r"ITEM NAMED (?P<barred>CANDIDATE) ENDED COLON", several=True),
    VerdictRule("negated", "I won't pick ‹A›",
         r"NOT [OTHER ARTICLE NOUN PREFER SAY GIVE IS ANSWER OVERALL LEFT OPEN HASH STOPWORD TO BETTER"
         r" HAVE TOO OF THAN LABEL]{0,7} (?P<barred>VALUE)"),
    VerdictRule("what the other is measured by", "clearer than ‹A›", r"THAN [OF TO]? [ARTICLE]? NAMED VALUE"),
    VerdictRule("what the other is measured by", "I prefer A to ‹B›",
         r"PREFER NAMED CANDIDATE ENDED TO NAMED (?P<barred>CANDIDATE)"),
    VerdictRule("a condition", "if ‹A› were shorter", r"IF (?!I) NOT_IN(DOT SEMI NL COMMA COLON){0,12} VALUE"),
    VerdictRule("a condition", "‹A› could be better", r"VALUE ENDED [ADVERB]{0,2} (?:COULD|WOULD HAVE)"),
)  # fmt: skip
"""Why a label is not the verdict."""

VERDICT_SUPPORTS = (
    VerdictRule("all there is", "Summary ‹A›.", r"START [LEAD NOUN ANSWER HASH]* A? RATING [TAIL]* END", 100),
    VerdictRule("in double brackets", "[[‹A›]]", r"LEFT LEFT RATING RIGHT RIGHT", 99),
    VerdictRule("in a tag", "<answer>‹A›</answer>",
         r"LT [ANSWER LABEL OTHER BETTER PREFER]{1,3} GT NL? NAMED RATING NL? LT SLASH", 98),
    VerdictRule("boxed", r"\boxed{‹A›}", r"BACKSLASH BOXED LEFT RATING", 98),
    VerdictRule("a final label", "Final verdict: ‹B›",
         r"OVERALL [ANSWER LABEL BETTER PREFER NOUN OTHER]{0,3} PAREN? QUOTE? POINT{1,2} NL? NAMED A?"
         r" RATING (?=[AFTERIT]|END)", 92),
    VerdictRule("a label", "Answer: ‹A›, as it is clear.",
         r"[ANSWER LABEL BETTER PREFER] NOUN? PAREN? QUOTE? POINT{1,2} NL? NAMED A? RATING"
         r" (?=[AFTERIT]|END)", 90),
    VerdictRule("a label in a table", "| Winner | ‹A› |", r"[ANSWER BETTER PREFER] PIPE NAMED RATING ENDED PIPE", 90),
    VerdictRule("an overall sentence", "Overall, ‹A› is better.",
         r"[OVERALL SO] NOT_IN(DOT SEMI NL NOT){0,14}? RATING ENDED [ADVERB IS COMMA]{0,6}"
         r" (?:QUALITY|WINS)", 78),
    VerdictRule("an overall sentence", "Overall, ‹A› is worse.",
         r"[OVERALL SO] NOT_IN(DOT SEMI NL NOT){0,14}? (?P<against>CANDIDATE) ENDED [ADVERB IS"
         r" COMMA]{0,6} (?:FAULT|LOSES)", 78),
    VerdictRule("an overall sentence", "So I choose ‹A›.",
         r"[OVERALL SO] NOT_IN(DOT SEMI NL NOT){0,10}? [PREFER BETTER] [ADVERB IS]{0,6} NAMED RATING"
         r" (?=[AFTERIT]|END)", 78),
    VerdictRule("an overall sentence", "So it is a ‹tie›.",
         r"[OVERALL SO] NOT_IN(DOT SEMI NL NOT){0,12}? (?P<rating>[TIE NEITHER])", 78),
    VerdictRule("a tie in the end", "A is clear, but they are ‹equally› good.",
         r"BUT NOT_IN(DOT SEMI NL NOT){0,8} (?P<rating>TIE)", 74),
    VerdictRule("the better one", "‹A› is clearer.",
         r"RATING ENDED COMMA? (?: IS [ADVERB IS]{0,4} QUALITY | [ADVERB]{1,4} IS [ADVERB]{0,3} QUALITY"
         r" | [ADVERB]{1,3} QUALITY (?!NOUN) | [ADVERB]{0,2} WINS )", 70),
    VerdictRule("the worse one", "‹B› is less fluent than A.",
         r"(?P<against>CANDIDATE) ENDED COMMA? (?: IS [ADVERB IS]{0,4} FAULT | [ADVERB]{1,4} IS"
         r" [ADVERB]{0,3} FAULT | [ADVERB]{1,3} FAULT (?!NOUN) | [ADVERB]{0,2} LOSES )", 70),
    VerdictRule("the better one", "The better summary is ‹B›.",
         r"BETTER [ADVERB ANSWER LABEL THAN TIE]{0,5} [IS POINT] A? NAMED RATING (?=[AFTERIT]|END)", 70),
    VerdictRule("the worse one", "The weaker summary is ‹B›.",
         r"WORSE [ADVERB ANSWER LABEL]{0,5} [IS POINT] A? NAMED (?P<against>CANDIDATE)"
         r" (?=[AFTERIT]|END)", 70),
    VerdictRule("chosen", "I would go with ‹B›.",
         r"PREFER [ADVERB ANSWER LABEL]{0,5} NAMED RATING (?=[AFTERIT]|END)", 70),
    VerdictRule("at the beginning", "‹A›, as it is clear.",
         r"START [LEAD]* NAMED RATING ENDED (?=[ENDING THAN]|STOPWORD)", 70),
    VerdictRule("at the end", "It is clear. ‹A›",
         r"[NL DOT BANG COLON SEMI SO] [LEAD NOUN ANSWER]{0,20} RATING [TAIL]* END", 66),
    VerdictRule("at the end", "My choice is ‹A›.",
         r"[ANSWER LABEL OVERALL] [ADVERB]{0,3} IS NAMED RATING [TAIL]* (?=[DOT COMMA NL STOPWORD]|END)", 66),
    VerdictRule("a tie", "Both are ‹equally› good.",
         r"[IS BOTH SAY GIVE] [OTHER STOPWORD TOO ARTICLE OF]{0,3} (?P<rating>TIE)", 64),
    VerdictRule("a tie", "They are the ‹same›.",
         r"IS [OTHER STOPWORD OF]{0,2} ARTICLE? (?P<rating>SAME) (?=[DOT COMMA NL STOPWORD]|END)", 64),
    VerdictRule("at the beginning", "It's ‹B› for me", r"START ARTICLE? IS NAMED RATING (?=[AFTERIT]|END)", 66),
    VerdictRule("a tie", "‹Equally› good.", r"START [LEAD A]* (?P<rating>TIE)", 64),
    VerdictRule("a tie", "‹Neither› is better.", r"(?P<rating>NEITHER)", 60),
)  # fmt: skip
"""Where a verdict stands, and how sure that place is."""
