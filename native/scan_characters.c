/* Character references to characters; twin: nephila/parse/characters.py. And what UTF-8 is. */
#include "scan.h"
#include "scan_references.h"

int buffer_reserve(buffer *self, size_t more) {
    if (self->failed)
        return -1;
    if (self->room - self->used >= more)
        return 0;
    size_t room = self->room ? self->room : 4096;
    while (room - self->used < more)
        room *= 2;
    unsigned char *bytes = PyMem_Realloc(self->bytes, room);
    if (!bytes) {
        self->failed = 1;
        return -1;
    }
    self->bytes = bytes;
    self->room = room;
    return 0;
}

/* Up to eight bytes as a number, the first one lowest. */
static inline uint64_t eight_bytes(text bytes, size_t size) {
    uint64_t value = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (size >= 8) {
        memcpy(&value, bytes, 8);
        return value;
    }
#endif
    for (size_t place = 0; place < size && place < 8; place++)
        value |= (uint64_t)bytes[place] << 8 * place;
    return value;
}

uint64_t hash_bytes(text bytes, size_t size) {
    uint64_t number = SEED;
    for (size_t at = 0; at < size; at += 8) {
        number = (number ^ eight_bytes(bytes + at, size - at)) * FACTOR;
        number ^= number >> 32;
    }
    number = (number ^ size) * LAST_FACTOR;
    return number ^ number >> 29;
}

static const struct reference_entry *known_reference(text name, size_t size) {
    uint64_t key = hash_bytes(name, size);
    size_t slot = (key * FACTOR) >> (64 - REFERENCE_SLOT_BITS);
    while (REFERENCES[slot].key) {
        if (REFERENCES[slot].key == key)
            return &REFERENCES[slot];
        slot = (slot + 1) & ((1u << REFERENCE_SLOT_BITS) - 1);
    }
    return NULL;
}

static inline int is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}

static inline int is_letter(unsigned char c) {
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

static inline int hex_digit(unsigned char c) {
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind "&#": the character of a number; 0 where there are no digits. */
static int numbered(text *at, text end, uint32_t codes[2]) {
    text p = *at;
    uint32_t number = 0, radix = 10;
    if (p < end && (*p == 'x' || *p == 'X')) {
        radix = 16;
        p++;
    }
    text first = p;
    for (; p < end; p++) {
        int digit = radix == 16 ? hex_digit(*p) : is_digit(*p) ? *p - '0' : -1;
        if (digit < 0)
            break;
        if (number <= 0x10FFFF)
            number = number * radix + (uint32_t)digit;
    }
    if (p == first)
        return 0;
    if (p < end && *p == ';')
        p++;
    if (number == 0 || number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF))
        number = 0xFFFD;
    else if (number >= 0x80 && number < 0xA0)
        number = C1[number - 0x80];
    *at = p;
    codes[0] = number;
    return 1;
}

/* At an ampersand: how many characters the reference stands for, and the place behind it; 0 where it is none. */
int read_reference(text *at, text end, int attribute, uint32_t codes[2]) {
    text name = *at + 1, p = name;
    if (p < end && *p == '#') {
        p++;
        int count = numbered(&p, end, codes);
        if (count)
            *at = p;
        return count;
    }
    while (p < end && (is_digit(*p) || is_letter(*p)))
        p++;
    size_t size = (size_t)(p - name);
    const struct reference_entry *entry = NULL;
    if (size && size < LONGEST_REFERENCE + 1 && p < end && *p == ';' && (entry = known_reference(name, size + 1)))
        p++;
    for (size_t length = size < LONGEST_LEGACY ? size : LONGEST_LEGACY; !entry && length > 1; length--) {
        entry = known_reference(name, length);
        if (entry && attribute && (length < size || (p < end && *p == '=')))
            return 0;
        if (entry)
            p = name + length;
    }
    if (!entry)
        return 0;
    *at = p;
    codes[0] = entry->first;
    codes[1] = entry->second;
    return entry->second ? 2 : 1;
}

/* Text with its references and line ends as characters, into twice its size of room; returns where it ended. */
unsigned char *put_decoded(unsigned char *to, text from, text end, int attribute) {
    while (from < end) {
        unsigned char c = *from;
        uint32_t codes[2];
        int count;
        if (c == '&' && (count = read_reference(&from, end, attribute, codes))) {
            for (int place = 0; place < count; place++)
                to += put_character(to, codes[place]);
        } else if (c == '\r') {
            *to++ = '\n';
            from += from + 1 < end && from[1] == '\n' ? 2 : 1;
        } else {
            *to++ = c;
            from++;
        }
    }
    return to;
}

int is_utf8(text bytes, size_t size) {
    text p = bytes, end = bytes + size;
    while (p < end) {
        for (; end - p >= 32; p += 32) {
            uint64_t eights[4];
            memcpy(eights, p, 32);
            if ((eights[0] | eights[1] | eights[2] | eights[3]) & UINT64_C(0x8080808080808080))
                break;
        }
        if (p == end)
            break;
        unsigned char c = *p;
        if (c < 0x80) {
            p++;
            continue;
        }
        int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC2 || c > 0xF4 || end - p <= more)
            return 0;
        for (int place = 1; place <= more; place++)
            if ((p[place] & 0xC0) != 0x80)
                return 0;
        if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) ||
            (c == 0xF4 && p[1] > 0x8F))
            return 0;
        p += more + 1;
    }
    return 1;
}
