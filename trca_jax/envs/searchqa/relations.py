"""What a question asks for: relations and the words that passages say them with, and the type of the answer.

Fixed patterns over the question's text. Source: spec/searchqa.md section 6.3.
"""

from __future__ import annotations

import re

# name: (how questions ask for it, words that passages say it with), both as regular expressions over lower-case text
_RELATIONS = {
    "director": (r"direct(?:s|ed|or|ors)\b|\bfilmmaker", r"direct(?:s|ed|or|ors|ing|ion)"),
    "screenwriter": (r"screenwriter|screenplay|scriptwriter", r"screenplay|written|wrote|writer|screenwriter|script"),
    "producer": (r"produce[drs]*\b", r"produce[drs]?|producing|production"),
    "composer": (r"compos(?:e|ed|er)\b|\bscore[ds]? (?:by|for)", r"compos(?:e|ed|er|ers|ition)|music|score[ds]?"),
    "performer": (r"perform\w*|\bs[iau]ngs?\b|\bsingers?\b|\bvocals?\b|\bartist\b|\brecorded\b|\bhit\b",
                  r"perform\w*|s[iau]ng|singers?|recorded|vocals?|artist|released"),
    "author": (r"author|\bwrote\b|\bwritten\b|\bwriters?\b|\bnovelist|\bpoet\b|\bplaywright",
               r"author(?:ed)?|wrote|written|writers?|novelist|poet|playwright|published"),
    "actor": (r"\bstar(?:s|red|ring)\b|\bactors?\b|\bactress|\bplay(?:s|ed)\b|\bcast\b|\bportray|\bvoice[ds]?\b",
              r"star(?:s|red|ring)|actors?|actress|play(?:s|ed|ing)|cast|portray\w*|voiced?|role"),
    "father": (r"\bfathers?\b|\bpaternal\b|\bparents?\b|\bgrand(?:father|mother|parent)|\buncle|\baunt",
               r"father|son|daughter|child|born to"),
    "mother": (r"\bmothers?\b|\bmaternal\b|\bmothered\b|\bgrand(?:mother|parent)|\bstep(?:father|sibling)|\buncle|"
               r"\baunt",
               r"mother|son|daughter|child|born to"),
    "spouse": (r"\bspouse|\bhusband|\bwife\b|\bwives\b|\bmarri\w+|\bwidow|\bin-law\b|\bstep\w+",
               r"spouse|husband|wife|marri\w+|widow|wed|wedding"),
    "child": (r"\b(?:step)?child(?:ren)?\b|\bsons?\b|\bdaughters?\b|\bkids\b",
              r"child(?:ren)?|sons?|daughters?|father|mother"),
    "sibling": (r"\bsiblings?\b|\bbrothers?\b|\bsisters?\b|\buncle\b|\baunt\b|\bcousin",
                r"siblings?|brothers?|sisters?"),
    "birth date": (r"\bborn\b|\bbirth(?:day|date)|\bdate of birth|\bolder\b|\byounger\b|\bage\b|\bhow old",
                   r"born|birth"),
    "birth place": (r"\bborn\b|\bbirth ?place|\bplace of birth|\bbirth city|\bnative\b|\bcome[s]? from\b",
                    r"born|birth|native"),
    "death date": (r"\bdie[ds]?\b|\bdeath\b|\blived? longer", r"died|death|killed|dies"),
    "death place": (r"\bdie[ds]?\b|\bplace of death|\bdeath ?place", r"died|death|killed"),
    "death cause": (r"\bcause of death|\bdie of\b|\bwhy did\b.*\bdie|\bhow did\b.*\bdie",
                    r"died|death|killed|suicide|disease"),
    "burial": (r"\bburi(?:ed|al)", r"buri(?:ed|al)|interred|cemetery|grave"),
    "citizenship": (r"\bnationality|\bcitizen|\bcountry\b|\bcountrymen",
                    r"citizen|nationality|country|born|american|british|\w+ish|\w+ian"),
    "country": (r"\bcountr(?:y|ies)\b|\bnation\b|\bwhat nationality", r"country|nation|state|republic|kingdom"),
    "located in": (r"\bwhere\b|\blocated\b|\bcity\b|\bcounty\b|\btown\b|\bstate\b|\bprovince\b|\bregion\b|"
                   r"\bborder|\bisland\b",
                   r"located|situated|city|county|town|state|province|region|borders?|lies|near|in the"),
    "capital": (r"\bcapital", r"capital|seat"),
    "headquarters": (r"\bheadquarter|\bbased\b", r"headquarter\w*|based|offices?"),
    "founder": (r"\bfound(?:ed|er|ers)\b|\bestablish|\binvent|\bcreat(?:e|ed|or)\b|\bdiscover|\bdesign|\bdevelop",
                r"found(?:ed|er|ers)|establish\w*|invent\w*|creat(?:e|ed|or|ors)|discover\w*|design\w*|develop\w*"),
    "inception": (r"\bestablished\b|\bfounded\b|\bformed\b|\bbuilt\b|\bcompleted\b|\bstarted?\b|\bbegan\b|"
                  r"\bbegin\b|\bopened\b",
                  r"establish\w*|founded|formed|built|completed|started|began|opened|since"),
    "publication": (r"\breleas|\bcame? out\b|\bpublish|\bpremier|\bair(?:ed|s)?\b|\bnewer\b|\bearlier\b|"
                    r"\bfirst shown",
                    r"releas\w*|publish\w*|premier\w*|aired|issued|launched"),
    "education": (r"\beducat|\bstud(?:y|ied)\b|\bgraduat|\balma mater|\battend|\bschool\b|\buniversity\b|"
                  r"\bcollege\b",
                  r"educat\w*|stud(?:y|ied)|graduat\w*|attend\w*|school|university|college|degree"),
    "employer": (r"\bemploy|\bwork(?:s|ed)? (?:at|for)|\bworkplace", r"employ\w*|work\w*|joined|professor"),
    "occupation": (r"\boccupation|\bprofession|\bjob\b|\bfamous for\b|\bknown for\b|\bwhat field",
                   r"was an?|is an?|worked|known"),
    "award": (r"\baward|\bprize|\bmedal|\bhonou?r|\bwon\b|\bwin(?:s|ner)?\b|\bnominat",
              r"award\w*|prize|medal|honou?r\w*|won|winner|nominat\w*"),
    "genre": (r"\bgenre|\btype of\b|\bkind of\b|\bstyle\b",
              r"genre|rock|pop|jazz|drama|comedy|fiction|style|kind|type"),
    "religion": (r"\breligio|\bfaith\b",
                 r"religio\w*|church|catholic|christian|muslim|islam\w*|jewish|buddhis\w*|hindu"),
    "sport": (r"\bsports?\b|\bteam\b|\bleague\b|\bclub\b", r"sports?|player|footballer|team|league|club|played"),
    "position": (r"\bposition\b|\bpart did\b",
                 r"goalkeeper|defender|midfielder|forward|quarterback|position|plays? as"),
    "color": (r"\bcolou?rs?\b", r"colou?rs?|red|blue|green|white|black|yellow"),
    "language": (r"\blanguages?\b", r"languages?|spoken|speak\w*"),
    "office": (r"\bpresident\b|\bprime minister|\bgovernor|\bmayor\b|\bking\b|\bqueen\b|\bleader\b|\bhead of\b|"
               r"\bchair|\bceo\b|\belected",
               r"president|minister|governor|mayor|king|queen|leader|head|chair\w*|elected|reign\w*|ceo"),
    "owner": (r"\bown(?:s|ed|er)\b|\bbought\b|\bparent company|\bacquir|\bpurchas",
              r"own(?:s|ed|er)|bought|acquir\w*|subsidiary|purchas\w*"),
    "publisher": (r"\bpublisher|\brecord label|\bdistribut|\bstudio\b|\bmanufactur|\bmakes\b|\bmaker\b|\bbrand\b",
                  r"publish\w*|label|distribut\w*|studio|manufactur\w*|made by|brand"),
    "member": (r"\bmembers?\b|\bband\b|\bgroup\b|\bbelong", r"members?|band|group|belong\w*|joined"),
    "character": (r"\bcharacters?\b|\brole\b", r"characters?|role|plays?|played"),
    "population": (r"\bpopulation\b|\bhow many people|\binhabitants",
                   r"population|inhabitants|people|residents|census"),
    "named after": (r"\bnamed? (?:after|for)\b|\bname\b|\bnickname|\bcalled\b|\bknown as\b",
                    r"named?|nickname\w*|called|known as|after"),
    "part of": (r"\bpart of\b|\bbelongs? to\b|\bseries\b|\bepisodes?\b|\bseason\b",
                r"part of|belong\w*|series|episodes?|season"),
    "event": (r"\bwar\b|\bbattle\b|\bhappen|\btake place|\btook place|\bheld\b|\blast time|\boccur",
              r"war|battle|happen\w*|held|took place|occurr\w*|event"),
    "cause": (r"\bwhy\b|\bcaus|\bpurpose|\bfunction\b|\bresponsible",
              r"because|caus\w*|purpose|function|due to|responsible"),
}  # fmt: skip
_ASKS = {name: re.compile(asks) for name, (asks, _) in _RELATIONS.items()}
_SAYS = {name: re.compile(rf"\b(?:{says})\b") for name, (_, says) in _RELATIONS.items()}

_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_DATE = re.compile(rf"\b(?:{_MONTH})\b \d|\b\d{{1,2}} (?:{_MONTH})\b|\b(?:1\d|20)\d\ds?\b|\b\d+ (?:bc|ad|bce)\b")
_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)
_NUMBER = re.compile(rf"\d|\b(?:{_NUMBERS.replace(' ', '|')})\b")

VAGUE = "located in"  # "where" and "which city" mostly say what type the answer has
YES_NO, DATE, NUMBER, PERSON, PLACE, NAME = "yes-no", "date", "number", "person", "place", "name"
NAMED = (PERSON, PLACE, NAME)  # types whose answers are names
_TYPES = (
    (YES_NO, r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b"),
    (DATE, r"\bwhen\b|\bwhat date\b|\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade)\b|\bdate of\b|"
           r"\bbirth(?:day|date)\b|^name the year|\bhow old\b"),
    (NUMBER, r"\bhow (?:many|much|long|far|tall|high|often|big|large|deep|fast|heavy)\b|\bwhat percent|"
             r"\bpopulation of\b|\bthe (?:number|cost|volume|average|temperature)\b|\bwhat age\b"),
    (PLACE, r"\bwhere\b|\b(?:what|which|whose) (?:\w+ ){0,2}(?:city|cities|country|countries|county|town|state|place|"
            r"island|province|region|river|continent|street|village|nation|capital|airport|lake|district)\b|"
            r"\bplace of\b|^what(?:'s| is| was) the (?:\w+ )?(?:capital|location)\b"),
    (PERSON, r"\bwho\b|\bwhom\b|\bwhose\b|\b(?:what|which) (?:\w+ ){0,3}(?:actor|actress|author|singer|person|man|"
             r"woman|artist|director|writer|king|queen|president|composer|player|scientist|comedian|painter|"
             r"novelist|politician)\b"),
    (NAME, r"\bwhat\b|\bwhich\b|\bname\b"),
)  # fmt: skip
_ASKED = tuple((kind, re.compile(pattern)) for kind, pattern in _TYPES)


def relations(question: str) -> tuple[str, ...]:
    """The relations that a question asks for, in the table's order.

    >>> relations("Who is the spouse of the director of film Up, Down, Fragile?")
    ('director', 'spouse')
    """
    lowered = question.lower()
    return tuple(name for name, asks in _ASKS.items() if asks.search(lowered))


def says(text: str, names: tuple[str, ...]) -> bool:
    """Whether a text holds a word for one of the relations."""
    lowered = text.lower()
    return any(_SAYS[name].search(lowered) for name in names)


def answer_type(question: str) -> str | None:
    """What kind of thing the answer is, by the question's words; None if they do not say.

    >>> answer_type("In what city was Ada Moss born?"), answer_type("Are both A and B films?")
    ('place', 'yes-no')
    """
    lowered = question.lower().strip()
    return next((kind for kind, asked in _ASKED if asked.search(lowered)), None)


def fits(text: str, kind: str) -> bool | None:
    """Whether a text can be, or holds, an answer of this kind; None where its words do not tell."""
    lowered = text.lower()
    if kind == YES_NO:
        return lowered.strip(" .!").split(" ")[0].rstrip(",.") in ("yes", "no")
    if kind == DATE:
        return _DATE.search(lowered) is not None or _YEAR.search(lowered) is not None
    if kind == NUMBER:
        return _NUMBER.search(lowered) is not None
    if kind in (PERSON, PLACE):
        return None if text[:1].islower() else any(char.isupper() for char in text)
    return None
