"""Main text, what texts are compared by, and which language they are in."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from nephila.model.likeness import distance, is_near_duplicate, resemblance
from nephila.model.page import Page
from nephila.parse import language_of, main_text
from nephila.parse.features import LEAST_WORDS
from nephila.parse.language import COMMON_WORDS, LANGUAGES
from nephila.parse.words import word_hash, words_of

Reader = Callable[..., Page]

CHANCE = random.Random(7)
VOCABULARY = ["".join(CHANCE.choices("abcdefghijklmnoprstuvz", k=CHANCE.randint(2, 9))) for _ in range(3_000)]


def article(words: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [chance.choice(VOCABULARY) for _ in range(words)]


def paragraphs(words: list[str]) -> str:
    return "".join(f"<p>{' '.join(words[start : start + 40])}.</p>" for start in range(0, len(words), 40))


MENU = "<nav><ul>" + "".join(f"<li><a href={word}>{word}</a></li>" for word in article(30, 2)) + "</ul></nav>"
FOOTER = f"<footer><p>{' '.join(article(40, 3))}</p></footer>"


def test_main_text_is_what_the_page_says(read: Reader) -> None:
    """X5: no navigation, no lists of links, no footer, no script; headings of a word or two are left out as well."""
    html = (
        f"<title>T</title>{MENU}<h1>Short</h1><p>A paragraph of <b>more than</b> ten words, with one <a href=x>link</a>"
        f" &amp; more.</p><script>var x</script><div>{'<a href=y>many links here</a> ' * 9}</div>{FOOTER}"
        f"<p>{'another sentence of the same page '.strip()} {'with words ' * 10}</p>"
    )
    text = main_text(html)
    assert text.split("\n")[0] == "A paragraph of more than ten words, with one link & more."
    assert len(text.split("\n")) == 2
    assert read(html).words == len(list(words_of(text)))


def test_a_word_that_may_be_broken_is_one_in_the_main_text() -> None:
    """X5: `<wbr>` puts no space into it."""
    assert main_text("<p>a super<wbr>cali<wbr/>fragi<wbr> listic word") == "a supercalifragi listic word"


def test_a_page_of_short_texts_is_taken_whole(read: Reader) -> None:
    """X5: but for its links; and a page of links with them."""
    short = "".join(f"<td>{word}</td>" for word in article(40))
    assert main_text(f"<table><tr>{short}<td><a href=x>a link of words</a></table>").split() == article(40)
    assert read(MENU).words == 30


NOTICES = "".join(f"<div>{' '.join(article(30, seed))}.</div>" for seed in (5, 6))


def properties(seed: int) -> str:
    """A table of what a product is like: other values each time."""
    labels, values = article(30, 8), article(90, seed)
    rows = (f"<tr><td>{label}</td><td>{' '.join(values[3 * at : 3 * at + 3])}</td>" for at, label in enumerate(labels))
    return f"<table>{''.join(rows)}</table>"


def entries(seed: int) -> str:
    """A list of nothing but links."""
    words = article(160, seed)
    items = (f"<li><a href=/{seed}/{at}>{' '.join(words[at : at + 8])}</a>" for at in range(0, 160, 8))
    return f"<ul>{''.join(items)}</ul>"


@pytest.mark.parametrize("content", [properties, entries])
def test_what_every_page_of_a_site_says_is_not_all_that_a_page_of_short_texts_says(
    content: Callable[[int], str], read: Reader
) -> None:
    """D3, X5: products in tables and lists of other entries are not the same because the notices below them are."""
    one, other = (read(f"<h1>Shop</h1>{content(seed)}{NOTICES}").likeness for seed in (11, 12))
    assert min(one.words, other.words) > 180
    assert not is_near_duplicate(one, other)
    assert distance(one, other) > 10
    again = read(f"{MENU}<h1>Shop</h1>{content(11)}{NOTICES}{FOOTER}").likeness
    assert is_near_duplicate(one, again)


def test_an_article_with_a_few_short_texts_is_told_by_its_paragraphs_alone(read: Reader) -> None:
    """X5: names of authors, captions and links to other articles are furniture where there is more of the article."""
    text = paragraphs(article(120))
    short = "".join(f"<div>{' '.join(article(4, seed))}</div>" for seed in range(20, 30))
    assert read(f"{short}{text}{entries(11)}").likeness == read(text).likeness


def test_pages_that_differ_in_furniture_are_near_duplicates(read: Reader) -> None:
    """D3: other menus, footers, advertisements, numbers and tags around the same text."""
    text = paragraphs(article(400))
    one = read(f"{MENU}{text}{FOOTER}").likeness
    half = len(text) // 2 + text[len(text) // 2 :].index("<p>")
    other = read(
        f"<div><h2>Buy now 17</h2>{text[:half]}<aside>{'buy this ' * 20}</aside>{text[half:]}<p>Page 3</div>"
    ).likeness
    assert is_near_duplicate(one, other)
    assert distance(one, other) == 0


def test_a_few_other_words_leave_near_duplicates(read: Reader) -> None:
    """D3: one in a hundred."""
    words = article(600)
    edited = [*words]
    for place in range(50, 600, 100):
        edited[place] = "edited"
    one, other = read(paragraphs(words)).likeness, read(paragraphs(edited)).likeness
    assert 0 < distance(one, other) <= 6
    assert is_near_duplicate(one, other)


def test_other_texts_are_far_away(read: Reader) -> None:
    """D3: in the same frame, with the same words in another order."""
    one, other = (read(f"{MENU}{paragraphs(article(400, seed))}{FOOTER}").likeness for seed in (1, 9))
    shuffled = read(paragraphs(sorted(article(400)))).likeness
    assert distance(one, other) > 12
    assert resemblance(one.sketch, other.sketch) < 0.1
    assert not is_near_duplicate(one, shuffled)


def test_short_texts_have_no_features(read: Reader) -> None:
    """D3: there is nothing to compare; the number of words is known all the same."""
    few = read(f"<p>{' '.join(article(LEAST_WORDS - 1))} 17 18").likeness
    assert (few.simhash, few.sketch, few.words) == (0, b"", LEAST_WORDS + 1)
    assert len(read(f"<p>{' '.join(article(LEAST_WORDS))}").sketch) == 64


def test_scripts_without_spaces_have_a_word_a_character() -> None:
    """D3: and marks and punctuation are none."""
    assert list(words_of("漢字かな、カナ ไทย์ Don't ÉCOLE İ x_1")) == [
        *"漢字かなカナไทย", "don", "t", "école", "i", "x", "1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "हिन्दी में कड़ियाँ",
        "আমরা পৃষ্ঠাটি পড়ি",
        "ਪੰਜਾਬੀ ਵਿੱਚ",
        "ગુજરાતી માં",
        "தமிழ் மொழியில்",
        "తెలుగు లో",
        "ಕನ್ನಡ ದಲ್ಲಿ",
        "മലയാളം ഭാഷയിൽ",
        "සිංහල භාෂාව",
        "שָׁלוֹם עוֹלָם",
        "مُحَمَّدٌ شُكْرًا",
        "ދިވެހި ބަސް",
    ],
)
def test_signs_for_vowels_cut_no_word(text: str, read: Reader) -> None:
    """D3: to Unicode they are marks, to readers parts of a word."""
    assert list(words_of(text)) == text.split()
    assert read(f"<p>{text}").words == len(text.split())


def test_the_hash_of_a_word_never_changes() -> None:
    """D3: it is kept in databases."""
    assert word_hash(b"") != word_hash(b"\0") != word_hash(b"\0\0")
    assert [word_hash(word) for word in (b"word", b"eight by", b"more than eight")] == [
        5924980600165639204,
        9544453850711711596,
        1499834258125608973,
    ]


SENTENCES = {
    "en": "The crawler reads the page and follows the links that are on it, but not those it was asked to leave.",
    "de": "Der Leser liest die Seite und folgt den Links, die auf ihr sind, aber nicht denen, die nicht erlaubt sind.",
    "fr": "Le lecteur lit la page et suit les liens qui sont dans le texte, mais pas ceux que la page ne donne pas.",
    "ru": "Мы читаем страницу и идём по ссылкам, которые на ней есть, но не по тем, что для нас закрыты, как принято.",
    "ja": "このページを読んで、その中にあるリンクをたどりますが、許されていないものはたどりません。",
    "zh": "我们阅读这个页面、并且跟随它的链接、但是不跟随不允许的链接、这是我们的规则、他们也是这样的。",
    "ar": "نحن نقرأ الصفحة في الموقع ثم نذهب إلى الروابط التي على هذه الصفحة من غير أن نطلب ما هذا الذي لا يسمح",
    "hi": "हम पृष्ठ को पढ़ते हैं और उस में जो कड़ियाँ हैं उन का अनुसरण करते हैं, पर जिन की अनुमति नहीं है उन का नहीं।",
    "th": "เราอ่านหน้าเว็บและตามลิงก์ที่อยู่ในหน้านั้น แต่ไม่ตามลิงก์ที่ไม่ได้รับอนุญาต",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_language_is_known_by_its_commonest_words(language: str, read: Reader) -> None:
    """X5: where the page and its server say nothing."""
    text = SENTENCES[language]
    assert language_of(text) == language
    assert read(f"<p>{text}").language == language
    assert read(f"<html lang=xx><p>{text}").language == "xx"
    assert read(f"<p>{text}", content_language="yy").language == "yy"
    assert read(f"<p>{text}", content_language="yy, zz").language == language


def test_no_language_is_guessed_from_nothing() -> None:
    """X5: names, numbers, a word of several languages."""
    assert language_of("") == language_of("Ford Opel Skoda 1 2 3") == language_of("de de de de") == ""
    marathi = "आम्ही पान वाचतो आणि त्यातील दुव्यांचे अनुसरण करतो, पण ज्यांना परवानगी नाही त्यांचे नाही. हा नियम सर्वांसाठी आहे."
    nepali = "हामी पृष्ठ पढ्छौं र त्यसमा भएका लिङ्कहरू पछ्याउँछौं, तर अनुमति नभएकालाई होइन। काठमाडौं नेपालको राजधानी हो।"
    assert language_of(marathi) == language_of(nepali) == "", "written as Hindi is, and not Hindi"
    assert all(len(set(words.split())) > 12 for words in COMMON_WORDS.values())
    assert len(LANGUAGES) == 30
