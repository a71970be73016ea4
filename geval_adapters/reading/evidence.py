"""What makes a number the rating, and what makes it something else: two tables, to be checked line by line.

Each rule is a pattern over classes of tokens (`lexer`), with an example, which is its test. `BARS` say why a value is
no rating, whatever else speaks for it: a range, a list number, a negation. `SUPPORTS` say where ratings stand; the
surer the place, the higher its strength. The rating is what has the strongest support; if two values share it, the
reply is only read where the form tells which of two labelled ratings counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from .lexer import compiled

UNIONS = {
    "NUMBER": "NUM BOLD WORDNUM",
    "VALUE": "NUMBER OWN STARS",
    "A": "ARTICLE CAPITAL",
    "TITLE": "LABEL CRITERION OVERALL",
    "NAME": "OTHER CAPITAL NOUN CRITERION QUESTION OF AND ARTICLE REASON BOUND FIT TOO GIVE STAR UNIT",
    "CLAUSE": "OTHER CAPITAL ARTICLE NOUN CRITERION GIVE EARN LABEL OF IS HAVE TOO FIT BOUND STOPWORD OVERALL SAY AND"
    " QUOTE",
    "PROSE": "CLAUSE ANSWER REASON TO I WOULD QUESTION SCALE BETWEEN BARRED DENOM FEN UNIT OWN",
    "AFTER": "DOT COMMA SEMI BANG COLON CLOSE OPEN RIGHT LEFT QUOTE NL DASH HYPHEN STOPWORD DENOM STAR FEN OVERALL SO"
    " BUT AND PIPE LT BLANK IS CRITERION BETWEEN EQ I BACKSLASH HASH NOTIT",
    "ENDING": "DOT COMMA SEMI BANG COLON CLOSE OPEN QUOTE NL DASH",
    "TAIL": "DOT BANG CLOSE RIGHT QUOTE NL DENOM STAR UNIT FEN HASH PIPE BACKSLASH SEMI",
    "LEAD": "OPEN LEFT QUOTE HASH BULLET DASH HYPHEN GT PIPE LT NL",
    "POINT": "COLON EQ DASH PIPE",
    "SIGN": "ADD PLUS TIMES MINUS HYPHEN DASH SLASH OPEN CLOSE EQ DENOM",
    "RANGING": "HYPHEN TO",
    "LINE": "(?: (?:START|NL) [DASH HYPHEN BULLET GT HASH PIPE]{0,4} )",
    "ITEM": "(?: (?:START|NL) [HASH BULLET GT DASH HYPHEN]{0,3} )",
    "PAREN": "(?: OPEN NOT_IN(CLOSE NL){0,9} CLOSE )",
    "ABOUTIT": "(?: STOPWORD [NAME CRITERION]{1,4} )",
    "OPENING": "[LEFT QUOTE OPEN ABOUT HASH]{0,3}",
}
"""Sets of classes, and pieces of patterns, that rules name."""


@dataclass(frozen=True)
class Rule:
    """One line of evidence.

    Attributes:
        name: what it is, as a reason says it.
        example: a reply that it applies to; what it is about stands in ‹ ›.
        pattern: over classes of tokens. Of a support, the group `rating` is the value; of a bar, every value in the
            group `barred`, or else in the whole match, unless the group `spared` took part.
        strength: of a support; labels have 90 and more, and among several labelled ratings the form decides.
        several: a bar that holds only where its values are several different ones.
    """

    name: str
    example: str
    pattern: str
    strength: int = 0
    several: bool = False
    UNIONS: ClassVar[Mapping[str, str]] = UNIONS

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return compiled(self.pattern, self.UNIONS)

    @cached_property
    def values(self) -> int:
        """How many values a reply has at the least where it applies: one, or more."""
        named = re.findall(r"\b(?:NUM|NUMBER|VALUE)\b", re.sub(r"NOT_IN\(.*?\)", "", self.pattern))
        return 2 if self.several else min(2, len(named))


LABELLED = 90
"""From this strength on a value stands behind the label that was asked for."""

DENOMINATORS = (
    Rule("the scale's top", "4 out of ‹5›",
         r"RATING (?P<rest> [UNIT FEN STAR]? OPEN? (?:SLASH|OUT OF?) [ARTICLE BOUND I OTHER]{0,2}"
         r" (?P<top>NUMBER) [FEN STAR UNIT]? CLOSE?)"),
    Rule("the scale's top", "4分（满分‹5›分）", r"RATING (?P<rest> FEN? OPEN FULL (?P<top>NUMBER) FEN? CLOSE)"),
    Rule("the scale's top", "4 (on a scale of 1-‹10›)",
         r"RATING (?P<rest> OPEN [STOPWORD ARTICLE SCALE OF BETWEEN LABEL COLON]{0,5} NUMBER [HYPHEN"
         r" DASH TO] (?P<top>NUMBER) CLOSE)"),
    Rule("percent", "80‹%›", r"RATING (?P<rest>(?P<percent>PERCENT))"),
    Rule("the scale's top", "Rating: 4 of ‹5›",
         r"RATING (?P<rest> OPEN? OF (?P<top>NUMBER) CLOSE?) (?=[DOT COMMA NL CLOSE OPEN DASH"
         r" STOPWORD]|END)", several=True),
)  # fmt: skip
"""How the top of a scale stands behind a value (`several`: it is one only if it is this scale's)."""

OTHER_SCALES = (
    Rule("another scale", "On a scale of 1 to ‹10›, I give it a 7",
         r"SCALE NOT_IN(NUM BOLD WORDNUM DOT NL){0,4} NUMBER [DASH AND TO HYPHEN] (?P<top>NUMBER)"),
    Rule("another scale", "满分‹10›分，给7分", r"(?<!NUMBER) (?<!NUMBER FEN) FULL (?P<top>NUMBER)"),
    Rule("another scale", "‹10›点満点中7点", r"(?P<top>NUMBER) FEN? FULL"),
    Rule("another scale", "Rating (1-‹10›): 7",
         r"LABEL OPEN [STOPWORD ARTICLE SCALE OF BETWEEN OUT]{0,5} NUMBER [HYPHEN DASH TO]"
         r" (?P<top>NUMBER) CLOSE POINT"),
)  # fmt: skip
"""Where a reply says which scale it rates on."""

BARS = (
    Rule("a sum", "Rating: ‹3› + ‹4› + ‹2› = 9", r"NUMBER DENOM* [SIGN] [SIGN NUMBER]{0,20} (?=EQ)"),
    Rule("a sum", "Rating: ‹3› + ‹2›", r"NUMBER [ADD TIMES] NUMBER"),
    Rule("a range", "Rating: ‹1›-‹5›", r"NUMBER [UNIT FEN STAR]? PAREN? RANGING A? NUMBER PAREN? (?:RANGING NUMBER)?"),
    Rule("a range", "on a scale of ‹1› - ‹5›",
         r"[SCALE BETWEEN] NOT_IN(NUM BOLD WORDNUM DOT NL COLON){0,4} NUMBER [UNIT FEN STAR]? [DASH AND"
         r" TO HYPHEN] A? NUMBER"),
    Rule("a range", "(‹1› – ‹5›)", r"(?<=OPEN) NUMBER [DASH TO] NUMBER (?=CLOSE)"),
    Rule("a range", "Rating: ‹3› – ‹4›", r"NUMBER DASH NUMBER (?=[DOT NL CLOSE]|END)"),
    Rule("one of several", "Choose ‹1›, ‹2› or ‹3›",
         r"NUMBER DENOM* (?:COMMA A? NUMBER DENOM*){0,8} COMMA? OR [A BOUND SAY FIT OTHER]{0,2} NUMBER"),
    Rule("one of several", "Scores of ‹1› and ‹2›.",
         r"NUMBER (?:COMMA NUMBER){0,8} COMMA? AND A? NUMBER (?=[DOT COMMA NL CLOSE DENOM STAR"
         r" UNIT]|END)"),
    Rule("one of several", "‹3›, ‹4›", r"NUMBER (?:COMMA NUMBER){1,9} (?=[DOT NL CLOSE OR]|END)"),
    Rule("one of several", "Answer: ‹Yes› and ‹no›", r"OWN [OR AND SLASH] OWN"),
    Rule("a list number", "‹1›. Clear.\n‹2›. Short.", r"ITEM (?P<barred>NUM) [DOT CLOSE] (?!NL|END)", several=True),
    Rule("a list number", "‹1›. Coherence: 4",
         r"ITEM (?P<barred>NUM) [DOT CLOSE] (?=QUOTE? [NAME TITLE ANSWER]{1,6} PAREN? QUOTE? [POINT NL]"
         r" [QUOTE LEFT OPEN ABOUT]{0,2} VALUE)"),
    Rule("a list number", "‹1›. How clear is it?\n4",
         r"START (?P<barred>NUM) [DOT CLOSE] (?= NUMBER [TAIL]* END | NOT_IN(NL BANG){0,40} BANG NL"
         r" NUMBER [TAIL]* END)"),
    Rule("a list number", "Good.\n‹2›.", r"NL (?P<barred>NUM) [DOT CLOSE] NL? END"),
    Rule("what scores mean", "‹5›: good\n‹1›: bad",
         r"(?:ITEM|[COMMA SEMI]) (?P<barred>NUMBER) [COLON DASH OPEN] [OTHER CAPITAL FIT TOO BOUND NOT"
         r" ARTICLE]", several=True),
    Rule("what scores mean", "‹1› = terrible", r"NUMBER EQ [OTHER CAPITAL FIT TOO BOUND NOT ARTICLE]"),
    Rule("negated", "I would not give it a ‹5›",
         r"NOT [OTHER ARTICLE NOUN GIVE EARN LABEL OF CRITERION IS HAVE TOO FIT BOUND SAY QUESTION"
         r" STOPWORD OVERALL]{0,6} (?P<barred>VALUE)"),
    Rule("negated", "‹5›点ではなく4点", r"VALUE [FEN STAR UNIT]? IS? NOTIT"),
    Rule("a limit", "more than a ‹3›", r"[THAN LIMIT] [ARTICLE OF TO LABEL BOUND EQ]{0,3} VALUE"),
    Rule("a limit", "a score > ‹3›", r"(?P<spared>LT SLASH? NOT_IN(GT LT NL){1,3}|NL|START)? [GT LT] VALUE"),
    Rule("a condition", "If it were short, I would give it a ‹5›",
         r"IF (?!I) NOT_IN(DOT SEMI NL BANG COLON NUM BOLD WORDNUM){0,20} VALUE"),
    Rule("a condition", "I'd give it a ‹5› if it were short", r"VALUE DENOM* [STAR UNIT]? COMMA? IF (?!I)"),
    Rule("a condition", "I was going to give it a ‹5›, but", r"TO GIVE [CLAUSE]{0,5} VALUE DENOM* COMMA? BUT"),
    Rule("a condition", "It could be a ‹5›", r"COULD [CLAUSE]{0,6} VALUE"),
    Rule("a condition", "It would have been a ‹5›", r"WOULD HAVE [CLAUSE]{0,6} VALUE"),
    Rule("a condition", "to earn a ‹5›", r"TO STOPWORD? EARN [CLAUSE]{0,5} VALUE"),
    Rule("what a score takes", "A ‹5› would name the town",
         r"VALUE DENOM* (?P<spared>(?:WOULD IS|MEANS|WOULD) [A STOPWORD]{0,2} [FIT LABEL I] )?"
         r" (?(spared)|(?:WOULD|MEANS|COULD))"),
    Rule("what a score takes", "A ‹2› is too harsh", r"VALUE DENOM* (?:WOULD|IS) IS? TOO"),
    Rule("another score", "The maximum score is ‹5›",
         r"(?P<spared>[GIVE EARN] [CLAUSE]{0,5}?)? BOUND [LABEL BOUND UNIT IS OF QUOTE OVERALL"
         r" CRITERION ARTICLE COLON EQ GIVE]{0,5} VALUE"),
    Rule("the scale's top", "‹5›点満点中4点", r"(?P<barred>NUMBER) FEN? FULL"),
    Rule("the scale's top", "满分‹5›分，给4分", r"(?<!BARRED) (?<!BARRED FEN) FULL NUMBER"),
    Rule("no score", "$‹5›", r"CURRENCY VALUE"),
    Rule("no score", "minus ‹3›", r"MINUS VALUE"),
    Rule("no score", "on line ‹3›", r"QUESTION HASH? VALUE (?!POINT)"),
    Rule("a count", "‹3› of the 5 points", r"NUMBER DENOM{0,4} OF"),
    Rule("a count", "‹3›-point", r"NUMBER HYPHEN [OTHER UNIT STAR QUESTION NOUN LABEL]"),
)  # fmt: skip
"""Why a value is not the rating. In this order; what one bars, the later ones do not see."""

SUPPORTS = (
    Rule("in a tag", "<score>‹4›</score>", r"LT [TITLE ANSWER OTHER GIVE]{1,3} GT NL? RATING DENOM* NL? LT SLASH", 100),
    Rule("boxed", r"\boxed{‹4›}", r"BACKSLASH BOXED LEFT RATING", 100),
    Rule("in double brackets", "Rating: [[‹4›]]", r"LEFT LEFT RATING DENOM* RIGHT RIGHT", 99),
    Rule("the criterion among others", "Fluency: 5\nCoherence: ‹4›\nOverall: 4",
         r"(?:[NAME]{1,4} LABEL? POINT [BARRED VALUE] NOT_IN(NL){0,40} NL) [DASH HYPHEN BULLET GT HASH"
         r" PIPE BARRED DOT]{0,4} CRITERION LABEL? PAREN? QUOTE? POINT OPENING RATING", 95),
    Rule("the criterion among others", "Coherence: ‹4›\nFluency: 5\nOverall: 4",
         r"LINE [BARRED DOT]{0,2} CRITERION LABEL? PAREN? QUOTE? POINT OPENING RATING (?=NOT_IN(NL)* NL"
         r" [DASH HYPHEN BULLET GT HASH PIPE BARRED DOT]{0,4} [NAME]{1,4} LABEL? POINT [BARRED VALUE])", 95),
    Rule("an overall label", "Overall rating: ‹4›",
         r"(?:OVERALL [NAME TITLE ANSWER]{0,4}|[LABEL CRITERION ANSWER] OVERALL) ABOUTIT? PAREN? QUOTE?"
         r" POINT PIPE? OPENING RATING", 92),
    Rule("a label after a sum", "Rating: (3 + 4) / 2 = ‹3.5›",
         r"TITLE POINT [SIGN BARRED]{1,30} RATING (?=[AFTER]|END)", 92),
    Rule("the label", "Rating: ‹4›",
         r"(?<!NOUN) (?<!OTHER) (?<!CAPITAL) (?<!REASON) (?<!BOUND) [LABEL CRITERION] LABEL? ABOUTIT?"
         r" PAREN? IS? QUOTE? POINT {1,2} OPENING A? RATING", 90),
    Rule("the label's table", "| Rating | Reason |\n|---|---|\n| ‹4› | Good. |",
         r"PIPE TITLE PIPE NOT_IN(NL){0,20} NL [PIPE DASH HYPHEN COLON]{3,20} NL PIPE RATING DENOM*"
         r" PIPE", 90),
    Rule("the line after the label", "Rating:\n‹4›",
         r"LINE [OVERALL I ARTICLE STOPWORD]{0,2} TITLE [LABEL ANSWER]? ABOUTIT? PAREN? POINT? DASH? NL"
         r" [DASH HYPHEN BULLET HASH GT LEFT]{0,3} RATING [DENOM STAR UNIT FEN RIGHT CLOSE]* [DOT BANG"
         r" COMMA]? (?=NL|END|OPEN|DASH)", 88),
    Rule("another's label", "Style score: ‹4›",
         r"[NOUN OTHER CAPITAL] LABEL PAREN? QUOTE? POINT OPENING A? RATING", 70),
    Rule("stars", "★★★☆☆", r"(?P<rating>STARS)", 75),
    Rule("an overall sentence", "Overall, I would give it a ‹4›.",
         r"[OVERALL SO] NOT_IN(DOT BANG SEMI NL COLON NUM BOLD WORDNUM STARS){0,16}? (?:[GIVE EARN"
         r" LABEL SAY] [PROSE COMMA DASH]{0,10}? | IS (?:ARTICLE OTHER?)?) RATING (?=[AFTER]|END)", 68),
    Rule("a correction", "not 5, but ‹2›",
         r"BARRED DENOM* [STAR UNIT FEN]? COMMA? BUT [BUT A]{0,2} RATING (?=[AFTER]|END)", 70),
    Rule("a correction", "The rating is not 2, it's ‹3›",
         r"BARRED DENOM* [STAR UNIT FEN]? COMMA [ARTICLE IS]{1,3} RATING (?=[AFTER]|END)", 70),
    Rule("a correction", "5点ではなく‹4›点", r"NOTIT COMMA? RATING (?=[AFTER]|END)", 70),
    Rule("given", "I would give it a ‹4›.",
         r"[GIVE EARN] [PROSE COMMA COLON]{0,12}? (?<!COLON OTHER) RATING (?=[AFTER]|END)", 62),
    Rule("given", "The coherence rating is ‹4›.", r"[LABEL CRITERION] [PROSE]{0,8}? RATING (?=[AFTER]|END)", 62),
    Rule("given", "I award it ‹4› points.",
         r"[I WOULD] [PROSE]{0,3} GIVE [PROSE]{0,8}? RATING UNIT (?=[AFTER]|END)", 62),
    Rule("given", "My verdict is a ‹2›.", r"ANSWER IS A? RATING (?=[AFTER]|END)", 60),
    Rule("given", "‹4›点をつけます", r"RATING FEN? IS? GIVE", 62),
    Rule("behind the scale's top", "5点満点中‹4›点です", r"BARRED FEN? FULL [OTHER COMMA I GIVE IS]{0,6} RATING", 60),
    Rule("said", "I'd say it's a ‹4›.", r"[I WOULD] [PROSE]{0,3}? SAY [PROSE QUOTE]{0,7}? RATING (?=[AFTER]|END)", 60),
    Rule("judged fitting", "A ‹4› seems fair.",
         r"RATING DENOM* (?:WOULD IS|IS|MEANS|WOULD) [A STOPWORD]{0,2} [FIT LABEL I]", 61),
    Rule("with the scale's top", "‹4› out of 5", r"RATING DENOM+ (?=[AFTER UNIT]|END)", 60),
    Rule("stars", "‹4› stars", r"RATING STAR (?!BETWEEN) (?=[AFTER]|END)", 58),
    Rule("the result of a sum", "3 + 1 = ‹4›", r"BARRED [SIGN]* EQ RATING (?=[AFTER]|END)", 58),
    Rule("another label", "Answer: ‹4›",
         r"LINE [CLAUSE]{0,2}? [ANSWER NOUN REASON OVERALL STAR] PAREN? QUOTE? POINT OPENING RATING"
         r" (?=[TAIL AFTER]|END)", 50),
    Rule("the line after another label", "Answer:\n‹4›",
         r"LINE [ANSWER NOUN OVERALL STAR] COLON? NL RATING DENOM* DOT? (?=NL|END)", 48),
    Rule("on a line of its own", "Good.\n‹4›\nClear.",
         r"NL [LEAD]{0,20} RATING [DENOM STAR UNIT FEN CLOSE RIGHT QUOTE]* DOT? (?=NL|END)", 40),
    Rule("all there is", "‹4›", r"START [LEAD]* A? RATING [TAIL]* END", 100),
    Rule("at the beginning", "‹4›: it is clear.",
         r"START [LEAD]* [A FIT]{0,2} (?P<rating>[NUMBER STARS]) [DENOM STAR UNIT FEN]* (?=[ENDING"
         r" CAPITAL PIPE NOUN BLANK RIGHT I REASON LABEL])", 30),
    Rule("emphasised", "I think **‹4›**, as it is clear.", r"(?P<rating>BOLD) (?=[AFTER]|END)", 32),
    Rule("at the end", "It is clear. ‹4›",
         r"[NL DOT BANG COLON SO] [LEAD COMMA]{0,20} (?P<rating>NUMBER) [TAIL]* END", 30),
    Rule("at the end", "Excellent - ‹5›",
         r"START [OTHER CAPITAL FIT]{1,3} [DASH COLON COMMA] (?P<rating>NUMBER) [TAIL]* END", 30),
    Rule("at the end", "Yes, ‹0›", r"START NOT_IN(NL) [COMMA DOT COLON]? (?P<rating>NUMBER) [TAIL]* END", 30),
    Rule("in brackets", "It is rather dull (‹2›).", r"OPEN RATING DENOM* CLOSE (?=[DOT COMMA SEMI NL]|END)", 22),
    Rule("the scale's word", "‹Yes›, it is.", r"START [LEAD]* (?P<rating>OWN) (?=[ENDING]|END)", 20),
    Rule("the scale's word", "It is clear. ‹Good›", r"(?<!BARRED) [DOT COLON NL] (?P<rating>OWN) [TAIL]* END", 18),
    Rule("the scale's word", "The text is ‹dull›.",
         r"START NOT_IN(DOT COMMA NL){0,20} IS A? (?P<rating>OWN) [TAIL]* END", 20),
)  # fmt: skip
"""Where a rating stands, and how sure that place is."""

UNNAMED = Rule(
    "another label", "Relevance: ‹4›", r"LINE [NAME]{1,3} PAREN? COLON OPENING RATING (?=[TAIL AFTER]|END)", 46
)
"""Where nobody said what the criterion is called, any label may be its name."""
