# ruff: noqa: RUF001 - the words are of many scripts
"""Which language a text is in, by its commonest words (X5).

A page says so itself, or its server does; this is for the others. Every language has a dozen words that no text does
without, and the one with the most of them among the first words is taken. Scripts without spaces give a word for every
character (`words.py`), so they need no rule of their own: their commonest characters are in the table.
"""

from __future__ import annotations

from collections.abc import Iterable

from .words import word_hash, words_of

LOOK_WORDS = 1_000
"""Words of a text that are looked at; our own choice."""
LEAST_HITS = 3
LEAST_SHARE = 12
"""At least one in so many words must be in the table; of running text it is one in three to six."""

COMMON_WORDS = {
    "en": "the of and to is that for with this are was from have you not by",
    "de": "der die und das den von zu ist mit nicht auf ein eine für auch sich werden",
    "fr": "le la les des et est une dans pour que qui sur pas au avec vous nous",
    "es": "el la los las de que y en una por con para del es como más su",
    "it": "il di che la per una non sono con del della gli anche alla è nel più",
    "pt": "o a os de que e do da em um uma para com não por mais dos",
    "nl": "de het een van en in is dat op te voor met niet zijn aan ook door",
    "pl": "w i na nie się do jest to że z jak o dla po od przez oraz",
    "ru": "и в на не что с по для как от это к из или за так же",
    "uk": "і в на не що та до з для як від це або про за їх він",
    "cs": "a v na se je že s z o do pro jsou jako by k od není",
    "sv": "och att det som en på är av för med till den har inte om ett kan",
    "da": "og at det som en på er af for med til den har ikke om et kan",
    "no": "og at det som en på er av for med til den har ikke om et kan",
    "fi": "ja on ei se että joka oli tai myös mutta kun ovat kanssa hän sekä ole niin",
    "tr": "ve bir bu için ile de da olarak daha çok olan gibi en kadar sonra ne her",
    "hu": "a az és hogy nem is egy meg de csak van volt már ez mint vagy el",
    "ro": "și de în la cu pe nu care din este pentru sau mai ca sunt fi prin",
    "vi": "và của là có không được cho các một trong với người này đã những để khi",
    "id": "yang dan di untuk dengan dari ini itu pada tidak dalam akan adalah ke juga oleh atau",
    "el": "και το η της του τα να με για από που τον στο είναι οι την θα",
    "bg": "и на в да се за от не с е са по че като при към това",
    "ar": "في من على إلى أن التي عن هذا مع هذه الذي ما كان بعد أو بين كل",
    "fa": "و در به از که این را با است برای آن یک می های شود بر خود",
    "he": "של את על לא עם הוא זה גם כי או היא אני כל יש אם אל בין",
    "ja": "の に は を た が で て と し れ さ あ い も な か",
    "zh": "的 是 不 了 在 我 有 这 他 们 和 为 你 来 我 要 个",
    "ko": "수 있는 및 등 것 이 그 있습니다 합니다 위한 대한 더 할 있다 하는 통해 우리",
    "th": "า น ก ร เ อ ง ม ย ว ล ท ส ด บ ค แ",
    "hi": "के में है की और को से का हैं पर यह एक ने कि भी नहीं था",
}
"""Thirty languages of the web; words that are spelled alike in several count for each."""

LANGUAGES = tuple(COMMON_WORDS)


def _table() -> dict[int, int]:
    table: dict[int, int] = {}
    for place, words in enumerate(COMMON_WORDS.values()):
        for word in words.split():
            number = word_hash(word.encode())
            table[number] = table.get(number, 0) | 1 << place
    return table


TABLE = _table()
"""The number of a word to a bit for every language that has it."""


def language_of_words(words: Iterable[int], count: int) -> str:
    """The language of the first `count` words of a text, given as numbers; empty where none stands out."""
    hits = [0] * len(LANGUAGES)
    for word in words:
        mask = TABLE.get(word, 0)
        while mask:
            hits[(mask & -mask).bit_length() - 1] += 1
            mask &= mask - 1
    most = max(hits)
    if most < LEAST_HITS or most * LEAST_SHARE < count or hits.count(most) > 1:
        return ""
    return LANGUAGES[hits.index(most)]


def language_of(text: str) -> str:
    """The language of a text, as its two-letter name; empty where none stands out."""
    numbers = [word_hash(word.encode()) for word, _ in zip(words_of(text), range(LOOK_WORDS), strict=False)]
    return language_of_words(numbers, len(numbers))
