/* Words, blocks, signature, main text and what it is compared by; twins: nephila/parse/prose.py, words.py, main.py,
 * features.py and language.py.
 */
#include "scan.h"
#include "scan_tags.h"
#include "scan_words.h"

enum { NO_WORD, LETTER, DIGIT, WORD_ALONE, NOT_SEEN, JOINS = 8 /* set beside one of the others */ };

/* For each character of the basic plane what it is in a word, and its lower case. */
static unsigned char KINDS[0x10000];
static uint16_t LOWER[0x10000];
/* Both for ASCII: the lower case, with the upper bit set for digits; zero for what is not in a word. */
static unsigned char PLAIN[0x80];
/* A bit for every name of the calendar, chosen by its upper twelve: most words are told from them without a guess. */
static uint64_t DATED[64];

static int kind_of(uint32_t code) {
    for (size_t place = 0; place < sizeof UNSEEN / sizeof *UNSEEN; place++)
        if (code == UNSEEN[place])
            return NOT_SEEN;
    for (size_t place = 0; place < sizeof JOINING / sizeof *JOINING; place++)
        if (code >= JOINING[place][0] && code <= JOINING[place][1])
            return JOINS | (Py_UNICODE_ISALNUM(code) ? LETTER : NO_WORD);
    for (size_t place = 0; place < sizeof SIGNS / sizeof *SIGNS; place++)
        if (code >= SIGNS[place][0] && code <= SIGNS[place][1])
            return LETTER;
    if (!Py_UNICODE_ISALNUM(code))
        return NO_WORD;
    for (size_t place = 0; place < sizeof ALONE / sizeof *ALONE; place++)
        if (code >= ALONE[place][0] && code <= ALONE[place][1])
            return WORD_ALONE;
    return Py_UNICODE_ISDECIMAL(code) ? DIGIT : LETTER;
}

void nephila_scan_prepare(void) {
    for (size_t slot = 0; slot < sizeof CALENDAR / sizeof *CALENDAR; slot++)
        if (CALENDAR[slot])
            DATED[CALENDAR[slot] >> 58] |= UINT64_C(1) << (CALENDAR[slot] >> 52 & 63);
    for (uint32_t code = 0; code < 0x10000; code++) {
        KINDS[code] = (unsigned char)kind_of(code);
        LOWER[code] = (uint16_t)Py_UNICODE_TOLOWER(code);
        if (code < 0x80)
            PLAIN[code] = KINDS[code] == NO_WORD ? 0 : (unsigned char)(LOWER[code] | (KINDS[code] == DIGIT) << 7);
    }
}

void prose_begin(prose *self, text limit) {
    memset(self, 0, sizeof *self);
    self->limit = limit;
    self->text = self->shape = SEED;
}

void prose_free(prose *self) {
    PyMem_Free(self->words);
    PyMem_Free(self->numeric);
    PyMem_Free(self->blocks);
    PyMem_Free(self->joined.bytes);
    PyMem_Free(self->composed.bytes);
}

static void break_block(prose *self) {
    if (self->count > self->first && !self->failed) {
        if (self->block_count == self->block_room) {
            uint32_t room = self->block_room ? self->block_room * 2 : 256;
            block *blocks = PyMem_Realloc(self->blocks, room * sizeof *blocks);
            if (!blocks) {
                self->failed = 1;
                return;
            }
            self->blocks = blocks;
            self->block_room = room;
        }
        self->blocks[self->block_count++] = (block){self->first, self->count, self->linked, self->framing > 0};
    }
    self->first = self->count;
    self->linked = 0;
}

static void read_held(prose *self);

/* Before anything that changes how text is read. */
static inline void settle_held(prose *self) {
    if (self->held)
        read_held(self);
    self->goes_on = 0;
}

void prose_start(prose *self, uint16_t tag, uint32_t flags, int link, int self_closing) {
    if (tag == TAG_WBR) {
        self->goes_on = 1;
        return;
    }
    settle_held(self);
    if (self->templates && tag != TAG_TEMPLATE)
        return; /* nothing of it is shown, and what is open in it ends with it */
    if (flags & BREAK) {
        break_block(self);
        self->framing += (flags & FRAME) != 0;
    }
    if (tag == TAG_A)
        self->in_link = link;
    else if (tag == TAG_TEMPLATE)
        self->templates += self->hidden != TAG_SVG; /* in a drawing it is an element like others */
    else if (self->hidden == TAG_SVG && flags & BREAKOUT)
        self->hidden = 0;
    else if (self->hidden == TAG_OPTION && tag == TAG_OPTGROUP)
        self->hidden = 0;
    else if ((!self->hidden || self->hidden == TAG_OPTION) &&
             (tag == TAG_NOSCRIPT || tag == TAG_OPTION || (tag == TAG_SVG && !self_closing)))
        self->hidden = tag;
}

void prose_end(prose *self, uint16_t tag, uint32_t flags) {
    if (tag == TAG_WBR)
        return;
    settle_held(self);
    if (self->templates && tag != TAG_TEMPLATE)
        return;
    if (flags & BREAK) {
        break_block(self);
        if (flags & FRAME && self->framing)
            self->framing--;
    }
    if (tag == TAG_A)
        self->in_link = 0;
    else if (tag == TAG_TEMPLATE)
        self->templates -= self->templates > 0;
    else if (self->hidden &&
             (tag == self->hidden ||
              (self->hidden == TAG_OPTION && (tag == TAG_SELECT || tag == TAG_OPTGROUP || tag == TAG_DATALIST))))
        self->hidden = 0;
}

void prose_close(prose *self) {
    settle_held(self);
    break_block(self);
}

/* A word that is being read. */
typedef struct {
    uint64_t number, eight;
    uint32_t size;
    unsigned shift;
    int numeric;
} word;

static const word NEW_WORD = {SEED, 0, 0, 0, 0};

static inline uint64_t step(uint64_t number, uint64_t next) {
    number = (number ^ next) * FACTOR;
    return number ^ number >> 32;
}

static inline void add_byte(word *self, unsigned char byte) {
    self->eight |= (uint64_t)byte << self->shift;
    self->shift += 8;
    self->size++;
    if (self->shift == 64) {
        self->number = step(self->number, self->eight);
        self->eight = 0;
        self->shift = 0;
    }
}

static inline uint64_t finished(const word *self) {
    uint64_t number = self->shift ? step(self->number, self->eight) : self->number;
    number = (number ^ self->size) * LAST_FACTOR;
    return number ^ number >> 29;
}

static inline int in_calendar(uint64_t number) {
    if (!(DATED[number >> 58] >> (number >> 52 & 63) & 1))
        return 0;
    size_t slot = (number * FACTOR) >> (64 - CALENDAR_SLOT_BITS);
    while (CALENDAR[slot]) {
        if (CALENDAR[slot] == number)
            return 1;
        slot = (slot + 1) & ((1u << CALENDAR_SLOT_BITS) - 1);
    }
    return 0;
}

static inline void sign(prose *self, uint64_t number, int numeric) {
    self->signed_any = 1;
    self->text = step(self->text, number);
    if (!numeric && !in_calendar(number))
        self->shape = step(self->shape, number);
}

static int more_room(prose *self) {
    uint32_t room = self->room ? self->room * 2 : 1024;
    uint64_t *words = PyMem_Realloc(self->words, room * sizeof *words);
    if (words)
        self->words = words;
    unsigned char *numeric = PyMem_Realloc(self->numeric, room);
    if (numeric)
        self->numeric = numeric;
    if (!words || !numeric) {
        self->failed = 1;
        return -1;
    }
    self->room = room;
    return 0;
}

static inline void end_word(prose *self, word *read, int title) {
    if (!read->size)
        return;
    if (self->seen < MAX_WORDS && !self->failed && (self->count < self->room || !more_room(self))) {
        uint64_t number = finished(read);
        self->seen++;
        if (!title) {
            self->words[self->count] = number;
            self->numeric[self->count++] = (unsigned char)read->numeric;
        }
        if (!title && self->in_link)
            self->linked++;
        else
            sign(self, number, read->numeric);
    }
    *read = NEW_WORD;
}

static inline int known_kind(uint32_t code) {
    return code < 0x10000 ? KINDS[code] : kind_of(code);
}

/* Whether a character makes one with the word before it: parts of a syllable are letters, too, and may begin one. */
static inline int joins(int kind, const word *read) {
    return kind & JOINS && (read->size || kind != JOINS);
}

static inline void add_character(prose *self, word *read, uint32_t code, int kind, int title) {
    kind &= ~JOINS;
    if (kind == NOT_SEEN)
        return;
    if (kind == NO_WORD || kind == WORD_ALONE)
        end_word(self, read, title);
    if (kind == NO_WORD)
        return;
    uint32_t lower = code < 0x10000 ? LOWER[code] : Py_UNICODE_TOLOWER(code);
    unsigned char bytes[4];
    size_t size = put_character(bytes, lower);
    for (size_t place = 0; place < size; place++)
        add_byte(read, bytes[place]);
    if (kind == WORD_ALONE) {
        read->numeric = Py_UNICODE_ISDECIMAL(lower) != 0;
        end_word(self, read, title);
    } else {
        read->numeric |= kind == DIGIT;
    }
}

/* How many of eight bytes, the first one lowest, are letters or digits of ASCII before one that is not; where the digits
 * are, their upper bits are set. */
static inline unsigned plain_bytes(uint64_t eight, uint64_t *digits) {
    const uint64_t each = UINT64_C(0x0101010101010101), upper = each * 0x80;
    uint64_t seven = eight & ~upper, folded = seven | each * 0x20;
    uint64_t letters = (folded + each * (0x80 - 'a')) & ~(folded + each * (0x7F - 'z'));
    *digits = (seven + each * (0x80 - '0')) & ~(seven + each * (0x7F - '9')) & upper;
    uint64_t others = (~(letters | *digits) | eight) & upper;
    return others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
}

/* Words of ASCII, as long as there are no others: read eight bytes at a time, with all that changes at hand. Returns where
 * something else begins. (Letters in lower case, and digits, have the bit that tells the cases apart.) */
static text read_plain_words(prose *self, text from, text end, int title) {
    uint64_t text_hash = self->text, shape = self->shape;
    uint32_t room = self->room - self->count, left = MAX_WORDS - self->seen, added = 0;
    uint64_t *words = self->words + self->count;
    unsigned char *numeric = self->numeric + self->count;
    int is_signed = title || !self->in_link;
    if (left > room)
        left = room;
    while (added < left && self->limit - from >= 8) {
        text begun = from;
        uint64_t eight, digits, number = SEED, mask, dated = 0;
        memcpy(&eight, from, 8);
        unsigned count = plain_bytes(eight, &digits);
        if (!count) {
            if (*from >= 0x80 || *from == '&')
                break;
            do
                from++;
            while (from < end && (*from == ' ' || *from == '\n'));
            if (from >= end)
                break;
            continue;
        }
        while (count == 8 && end - from > 8 && self->limit - from >= 16) {
            number = step(number, eight | UINT64_C(0x2020202020202020));
            dated |= digits;
            from += 8;
            memcpy(&eight, from, 8);
            count = plain_bytes(eight, &digits);
        }
        if (count > end - from)
            count = (unsigned)(end - from);
        if (count == 8 || (from + count < end && (from[count] >= 0x80 || from[count] == '&'))) {
            from = begun; /* the end of the text, or not ASCII alone */
            break;
        }
        if (count) {
            mask = ~UINT64_C(0) >> (64 - 8 * count);
            number = step(number, (eight | UINT64_C(0x2020202020202020)) & mask);
            dated |= digits & mask;
            from += count;
        }
        number = (number ^ (uint64_t)(from - begun)) * LAST_FACTOR;
        number ^= number >> 29;
        words[added] = number; /* a title's words are signed only, and written over */
        numeric[added++] = dated != 0;
        if (is_signed) {
            text_hash = step(text_hash, number);
            if (!dated && !in_calendar(number))
                shape = step(shape, number);
        }
        if (from >= end)
            break;
    }
    self->text = text_hash;
    self->shape = shape;
    self->seen += added;
    self->signed_any |= is_signed && added;
    if (!title) {
        self->count += added;
        self->linked += is_signed ? 0 : added;
    }
    return from;
}

#ifdef __SSE2__
#include <emmintrin.h>

/* Of up to 64 bytes: which are letters or digits of ASCII, which of them digits, and which are for the other readers. */
typedef struct {
    uint64_t words, digits, others;
} masks;

static inline uint64_t bits_of(__m128i bytes, int quarter) {
    return (uint64_t)(uint32_t)_mm_movemask_epi8(bytes) << 16 * quarter;
}

/* Bytes are compared as signed numbers: those that are not ASCII are below all. */
static inline __m128i between(__m128i bytes, char first, char last) {
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8((char)(first - 1))),
                         _mm_cmplt_epi8(bytes, _mm_set1_epi8((char)(last + 1))));
}

static inline uint64_t first_bits(unsigned count) {
    return count ? ~UINT64_C(0) >> (64 - count) : 0;
}

static inline masks look_at(text from, unsigned size) {
    masks found = {0, 0, 0};
    for (int quarter = 0; quarter < 4; quarter++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(from + 16 * quarter));
        __m128i digits = between(bytes, '0', '9');
        __m128i letters = between(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 'z');
        found.digits |= bits_of(digits, quarter);
        found.words |= bits_of(_mm_or_si128(digits, letters), quarter);
        found.others |= bits_of(_mm_or_si128(bytes, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&'))), quarter);
    }
    uint64_t given = first_bits(size);
    return (masks){found.words & given, found.digits & given, found.others & given};
}

/* As `read_plain_words`, 64 bytes at a time: where words begin and end is known before the first is read, so that one
 * need not wait for the other. What is at the end of the page's bytes is left to that. */
static text read_plain_blocks(prose *self, text from, text end, int title) {
    uint64_t text_hash = self->text, shape = self->shape;
    uint32_t left = MAX_WORDS - self->seen, added = 0;
    if (left > self->room - self->count)
        left = self->room - self->count;
    uint64_t *words = self->words + self->count;
    unsigned char *numeric = self->numeric + self->count;
    int is_signed = title || !self->in_link, over = 0;
    while (!over && from < end && self->limit - from >= 72 && left - added >= 32) {
        unsigned size = end - from < 64 ? (unsigned)(end - from) : 64;
        masks seen = look_at(from, size);
        unsigned next = size; /* where to go on */
        if (seen.others) {
            next = (unsigned)__builtin_ctzll(seen.others);
            over = 1;
        }
        if (next && (from + next < end || over)) { /* a word that may go on is not read here */
            uint64_t gaps = ~(seen.words << (64 - next));
            unsigned begun = gaps ? (unsigned)__builtin_clzll(gaps) : 64;
            over |= begun >= next;
            next -= begun < next ? begun : next;
        }
        uint64_t own = seen.words & first_bits(next), begins = own & ~(own << 1), ends = ~own & own << 1;
        for (; begins; begins &= begins - 1, ends &= ends - 1) {
            unsigned first = (unsigned)__builtin_ctzll(begins), last = ends ? (unsigned)__builtin_ctzll(ends) : 64;
            unsigned length = last - first, left_over = length;
            text at = from + first;
            uint64_t number = SEED, eight;
            for (; left_over > 8; left_over -= 8, at += 8) {
                memcpy(&eight, at, 8);
                number = step(number, eight | UINT64_C(0x2020202020202020));
            }
            memcpy(&eight, at, 8);
            number = step(number, (eight | UINT64_C(0x2020202020202020)) & ~UINT64_C(0) >> (64 - 8 * left_over));
            number = (number ^ length) * LAST_FACTOR;
            number ^= number >> 29;
            int dated = seen.digits && seen.digits >> first & first_bits(length);
            words[added] = number; /* a title's words are signed only, and written over */
            numeric[added++] = (unsigned char)dated;
            if (is_signed) {
                text_hash = step(text_hash, number);
                if (!dated && !in_calendar(number))
                    shape = step(shape, number);
            }
        }
        from += next;
    }
    self->text = text_hash;
    self->shape = shape;
    self->seen += added;
    self->signed_any |= is_signed && added;
    if (!title) {
        self->count += added;
        self->linked += is_signed ? 0 : added;
    }
    return from;
}
#else
static text read_plain_blocks(prose *self, text from, text end, int title) {
    return read_plain_words(self, from, end, title);
}
#endif

/* Letters and their accents as one (NFC), by Python: such texts are rare. NULL where that failed. */
static PyObject *put_together(const buffer *apart) {
    static PyObject *normalize, *form;
    if (!normalize) {
        PyObject *module = PyImport_ImportModule("unicodedata");
        form = form ? form : PyUnicode_InternFromString("NFC");
        normalize = module ? PyObject_GetAttrString(module, "normalize") : NULL;
        Py_XDECREF(module);
    }
    PyObject *written = PyUnicode_DecodeUTF8((const char *)apart->bytes, (Py_ssize_t)apart->used, "replace");
    PyObject *whole = normalize && form && written ? PyObject_CallFunctionObjArgs(normalize, form, written, NULL) : NULL;
    Py_XDECREF(written);
    return whole;
}

/* A run of letters and what joins them, which begins at a place of the text; returns the place behind it. */
static text read_joined(prose *self, text from, text end, int references, word *read, int title) {
    buffer *run = &self->composed;
    size_t count = 0;
    run->used = 0;
    *read = NEW_WORD;
    for (text before = from; from < end; before = from) {
        uint32_t codes[2];
        int given = *from == '&' && references ? read_reference(&from, end, 0, codes) : 0;
        if (!given) {
            codes[0] = get_character(&from);
            given = 1;
        }
        int kind = known_kind(codes[0]);
        if (kind == NO_WORD || kind == WORD_ALONE) {
            from = before;
            break;
        }
        for (int place = 0; place < given; place++) {
            if (known_kind(codes[place]) == NOT_SEEN)
                continue;
            if (buffer_reserve(run, 4) < 0) {
                self->failed = 1;
                return end;
            }
            run->used += put_character(run->bytes + run->used, codes[place]);
            count++;
        }
    }
    text at = run->bytes, last = at + run->used;
    PyObject *whole = NULL;
    if (count <= LONGEST_JOINED && self->seen < MAX_WORDS) {
        Py_ssize_t size = 0;
        whole = put_together(run);
        at = whole ? (text)PyUnicode_AsUTF8AndSize(whole, &size) : NULL;
        last = at ? at + size : at;
        self->failed |= !at;
    }
    while (at && at < last) {
        uint32_t code = get_character(&at);
        add_character(self, read, code, known_kind(code), title);
    }
    Py_XDECREF(whole);
    return from;
}

static void read_words(prose *self, text from, text end, int references, int title) {
    if (self->hidden || self->templates || self->seen >= MAX_WORDS || self->failed)
        return;
    word read = NEW_WORD;
    text begun = from; /* of the word that is being read */
    while (from < end) {
        if (!read.size && (from = read_plain_blocks(self, from, end, title)) >= end)
            return;
        if (!read.size && (from = read_plain_words(self, from, end, title)) >= end)
            return;
        if (!read.size)
            begun = from;
        unsigned char c = *from;
        if (c < 0x80) {
            unsigned char plain = PLAIN[c];
            if (plain) {
                add_byte(&read, plain & 0x7F);
                read.numeric |= plain >> 7;
                from++;
                continue;
            }
            uint32_t codes[2];
            int count;
            if (c == '&' && references && (count = read_reference(&from, end, 0, codes))) {
                if (joins(known_kind(codes[0]), &read)) {
                    from = read_joined(self, begun, end, references, &read, title);
                    continue;
                }
                for (int place = 0; place < count; place++)
                    add_character(self, &read, codes[place], known_kind(codes[place]), title);
                continue;
            }
            end_word(self, &read, title);
            from++;
        } else {
            uint32_t code = get_character(&from);
            int kind = known_kind(code);
            if (joins(kind, &read))
                from = read_joined(self, begun, end, references, &read, title);
            else
                add_character(self, &read, code, kind, title);
        }
    }
    end_word(self, &read, title);
}

/* What is held is read: where it was put together of several texts, no further than that. */
static void read_held(prose *self) {
    text from = self->held, limit = self->limit;
    self->held = NULL;
    if (self->joined.used)
        self->limit = self->held_end;
    read_words(self, from, self->held_end, self->held_references, 0);
    self->limit = limit;
    self->joined.used = 0;
}

/* Text behind what is held, as if nothing stood between them. */
static void hold_more(prose *self, text from, text end, int references) {
    buffer *joined = &self->joined;
    size_t size = (size_t)(end - from), before = joined->used ? 0 : (size_t)(self->held_end - self->held);
    if (buffer_reserve(joined, 2 * (size + before) + 16) < 0) {
        self->failed = 1;
        return;
    }
    unsigned char *to = joined->bytes + joined->used;
    if (before)
        to = self->held_references ? put_decoded(to, self->held, self->held_end, 0)
                                   : (unsigned char *)memcpy(to, self->held, before) + before;
    to = references ? put_decoded(to, from, end, 0) : (unsigned char *)memcpy(to, from, size) + size;
    joined->used = (size_t)(to - joined->bytes);
    self->held = joined->bytes;
    self->held_end = to;
    self->held_references = 0;
}

void prose_text(prose *self, text from, text end, int references) {
    if (self->goes_on && self->held) {
        self->goes_on = 0;
        hold_more(self, from, end, references);
        return;
    }
    settle_held(self);
    self->held = from;
    self->held_end = end;
    self->held_references = references;
}

void prose_title(prose *self, text from, text end) {
    settle_held(self);
    read_words(self, from, end, 1, 1);
}

/* Which blocks hold what the page says. */
enum { LONG, SAID, SHOWN, ALL };

static inline int is_chosen(const block *self, int choice) {
    uint32_t size = self->last - self->first;
    if (choice == ALL)
        return 1;
    if (self->framing)
        return 0;
    if (choice == SHOWN)
        return 1;
    if (choice == SAID)
        return self->linked * LOOSE_LINK_SHARE <= size;
    return size >= LEAST_BLOCK && self->linked * LINK_SHARE <= size;
}

/* The choice for what pages are compared by; in `said` that for what they say, which are their links where there is little
 * else (`main.said_blocks`). */
static int choice_of(const prose *self, int *said) {
    uint32_t words[ALL] = {0};
    for (uint32_t place = 0; place < self->block_count; place++) {
        const block *one = &self->blocks[place];
        for (int choice = LONG; choice < ALL; choice++)
            if (is_chosen(one, choice))
                words[choice] += one->last - one->first;
    }
    int choice = words[SAID] >= LEAST_TEXT ? SAID : ALL, linked = words[SHOWN] >= LEAST_TEXT ? SHOWN : ALL;
    if (words[LONG] >= LEAST_TEXT && words[SAID] - words[LONG] <= words[LONG])
        choice = LONG;
    int links = words[SHOWN] - words[SAID] > LINKS_OVER_TEXT * words[SAID];
    *said = links ? linked : choice;
    return links && words[SAID] < LITTLE_TEXT ? linked : choice;
}

/* Eight bytes for the words of the blocks, without numbers and what they count, and without names of the calendar. */
static uint64_t said_by(const prose *self, int choice) {
    uint64_t said = SEED;
    int counted = 0; /* whether the word before was a number */
    for (uint32_t place = 0; place < self->block_count; place++) {
        const block *chosen = &self->blocks[place];
        if (!is_chosen(chosen, choice))
            continue;
        for (uint32_t at = chosen->first; at < chosen->last; at++) {
            if (!counted && !self->numeric[at] && !in_calendar(self->words[at]))
                said = step(said, self->words[at]);
            counted = self->numeric[at];
        }
    }
    return said;
}

enum { COUNTER_BITS = 17 };

/* How many runs have each bit set: counter n of all 64 is bit n of `planes`. */
typedef struct {
    uint64_t planes[COUNTER_BITS];
    uint64_t least[PLACES];
    uint32_t runs;
} tally;

static inline void add_plane(tally *self, int plane, uint64_t carry) {
    for (; carry; plane++) {
        uint64_t next = self->planes[plane] & carry;
        self->planes[plane] ^= carry;
        carry = next;
    }
}

/* Three bits of one weight, in each place, as a bit of that weight and one of the next. */
static inline uint64_t sum_of(uint64_t *next, uint64_t one, uint64_t two, uint64_t three) {
    uint64_t either = one ^ two;
    *next = (one & two) | (either & three);
    return either ^ three;
}

/* Counts eight runs: pairs are added up first, so that the higher counters are touched once for all. */
static inline void count_eight(tally *self, const uint64_t runs[8]) {
    uint64_t *ones = &self->planes[0], *twos = &self->planes[1], *fours = &self->planes[2];
    uint64_t two[4], four[2], eight;
    for (int pair = 0; pair < 4; pair++)
        *ones = sum_of(&two[pair], *ones, runs[2 * pair], runs[2 * pair + 1]);
    *twos = sum_of(&four[0], *twos, two[0], two[1]);
    *twos = sum_of(&four[1], *twos, two[2], two[3]);
    *fours = sum_of(&eight, *fours, four[0], four[1]);
    add_plane(self, 3, eight);
}

/* The bits that more than half of the runs have set: all counters are compared at once, from their highest bit down. */
static uint64_t majority(const tally *self) {
    uint64_t more = 0, same = ~UINT64_C(0);
    uint32_t needed = self->runs / 2 + 1;
    for (int plane = COUNTER_BITS - 1; plane >= 0; plane--) {
        if (!(needed >> plane & 1))
            more |= same & self->planes[plane];
        same &= needed >> plane & 1 ? self->planes[plane] : ~self->planes[plane];
    }
    return more | same;
}

void prose_likeness(const prose *self, likeness *out) {
    memset(out, 0, sizeof *out);
    tally counts = {{0}, {0}, 0};
    memset(counts.least, 0xFF, sizeof counts.least);
    uint64_t one = 0, two = 0, runs[8];
    uint32_t steady = 0;
    int said, choice = choice_of(self, &said);
    for (uint32_t place = 0; place < self->block_count; place++) {
        const block *chosen = &self->blocks[place];
        if (!is_chosen(chosen, choice))
            continue;
        out->words += chosen->last - chosen->first;
        for (uint32_t at = chosen->first; at < chosen->last; at++) {
            if (self->numeric[at])
                continue;
            uint64_t three = self->words[at];
            if (++steady >= 3) {
                uint64_t run = one * RUN_FIRST + two * RUN_SECOND + three * RUN_THIRD;
                run = (run ^ run >> 32) * FACTOR;
                run ^= run >> 29;
                if (run < counts.least[run >> 58])
                    counts.least[run >> 58] = run;
                runs[counts.runs++ % 8] = run;
                if (counts.runs % 8 == 0)
                    count_eight(&counts, runs);
            }
            one = two;
            two = three;
        }
    }
    if (steady < LEAST_WORDS)
        return;
    for (uint32_t left = 0; left < counts.runs % 8; left++)
        add_plane(&counts, 0, runs[left]);
    out->comparable = 1;
    out->said = said_by(self, said);
    out->simhash = majority(&counts);
    for (int place = 0; place < PLACES; place++)
        out->sketch[place] = counts.least[place] == UINT64_MAX ? 0 : (unsigned char)(counts.least[place] % 255 + 1);
}

const char *prose_language(const prose *self) {
    uint32_t hits[LANGUAGE_COUNT] = {0};
    uint32_t count = self->count < LOOK_WORDS ? self->count : LOOK_WORDS;
    for (uint32_t at = 0; at < count; at++) {
        uint64_t number = self->words[at];
        size_t slot = (number * FACTOR) >> (64 - LANGUAGE_SLOT_BITS);
        uint32_t mask = 0;
        while (COMMON_WORDS[slot].key) {
            if (COMMON_WORDS[slot].key == number) {
                mask = COMMON_WORDS[slot].mask;
                break;
            }
            slot = (slot + 1) & ((1u << LANGUAGE_SLOT_BITS) - 1);
        }
        for (int language = 0; mask; language++, mask >>= 1)
            hits[language] += mask & 1;
    }
    uint32_t most = 0;
    int best = 0, ties = 0;
    for (int language = 0; language < LANGUAGE_COUNT; language++) {
        if (hits[language] > most) {
            most = hits[language];
            best = language;
            ties = 1;
        } else if (hits[language] == most) {
            ties++;
        }
    }
    return most < LEAST_HITS || most * LEAST_SHARE < count || ties > 1 ? "" : LANGUAGES[best];
}
