/* Which elements are open, told from tags alone; twin: nephila/parse/nesting.py, where the rules are explained. */
#include "scan.h"
#include "scan_tags.h"

enum { MODES = TABLE | CELL | SELECT };

_Static_assert((int)FORMATTING_ROOM == (int)FORMATTING_COUNT, "one place for each formatting element");

static int holds_text(uint16_t tag) {
    switch (tag) {
    case TAG_TITLE:
    case TAG_DESC:
    case TAG_FOREIGNOBJECT:
    case TAG_MI:
    case TAG_MO:
    case TAG_MN:
    case TAG_MS:
    case TAG_MTEXT:
    case TAG_ANNOTATION_XML:
        return 1;
    }
    return 0;
}

static inline open_element *top(nesting *self) {
    return &self->open[self->depth - 1];
}

void nesting_begin(nesting *self) {
    self->depth = 1;
    self->paragraphs = self->table_in_paragraph = self->form = self->doubt = self->anchor_count = 0;
    memset(&self->formatting, 0, sizeof self->formatting);
    memset(self->open, 0, sizeof *self->open);
    self->open[0].tag = TAG_HTML;
    self->open[0].key = 0x6c6d7468; /* html */
    self->open[0].flags = SPECIAL | SCOPE;
}

void nesting_want_text(nesting *self) {
    self->anchors[self->anchor_count++] = self->depth - 1;
    if (self->anchor_count > MOST_ANCHORS)
        self->doubt = 1;
}

/* Close the element at that place, and all in it; a place below one is none. */
static void cut(nesting *self, int at) {
    if (at < 1)
        return;
    for (int place = self->depth - 1; place >= at; place--) {
        open_element *entry = &self->open[place];
        self->paragraphs -= entry->tag == TAG_P;
        if (entry->flags & MARKER) {
            self->formatting = entry->outside;
        } else if (entry->flags & FORMATTING && !entry->foreign) {
            self->formatting.again[FORMATTING_PLACE[entry->tag]] = at;
            self->formatting.any_again = 1;
        }
    }
    self->depth = at;
    for (int place = 0; self->formatting.any_again && place < FORMATTING_ROOM; place++)
        if (self->formatting.again[place] > at)
            self->formatting.again[place] = at;
    while (self->anchor_count && self->anchors[self->anchor_count - 1] >= at)
        self->anchor_count--;
}

void nesting_close_last(nesting *self) {
    cut(self, self->depth - 1);
}

void nesting_close_all(nesting *self) {
    if (self->depth > 1)
        cut(self, 1);
}

static void push(nesting *self, uint64_t key, uint16_t tag, uint32_t flags, int foreign, uint32_t mode) {
    open_element *entry = &self->open[self->depth++];
    entry->key = key;
    entry->tag = tag;
    entry->flags = flags;
    entry->foreign = (unsigned char)foreign;
    entry->mode = mode;
    if (flags & MARKER) {
        entry->outside = self->formatting;
        memset(&self->formatting, 0, sizeof self->formatting);
    }
    self->paragraphs += tag == TAG_P;
    if (self->depth > DEEPEST)
        self->doubt = 1;
}

static void take_out(nesting *self, int at) {
    memmove(&self->open[at], &self->open[at + 1], (size_t)(self->depth - at - 1) * sizeof *self->open);
    self->depth--;
    for (int place = 0; place < self->anchor_count; place++)
        self->anchors[place] -= self->anchors[place] > at;
    for (int place = 0; self->formatting.any_again && place < FORMATTING_ROOM; place++)
        self->formatting.again[place] -= self->formatting.again[place] > at;
}

/* Where the last element of that name stands, if nothing that stops the look stands before it; 0 where it does not. */
static int found(nesting *self, uint64_t key, uint32_t stop, uint16_t stop_tag, uint16_t other_stop_tag) {
    for (int at = self->depth - 1; at > 0; at--) {
        open_element *entry = &self->open[at];
        if (entry->key == key && !entry->foreign)
            return at;
        if (entry->flags & stop)
            return 0;
        if (!entry->foreign && entry->tag && (entry->tag == stop_tag || entry->tag == other_stop_tag))
            return 0;
    }
    return 0;
}

static int found_tag(nesting *self, uint16_t tag) {
    for (int at = self->depth - 1; at > 0; at--)
        if (self->open[at].tag == tag && !self->open[at].foreign)
            return at;
    return 0;
}

static int nearest(nesting *self, uint32_t flag) {
    for (int at = self->depth - 1; at > 0; at--)
        if (self->open[at].flags & flag)
            return at;
    return 0;
}

/* Where the cell stands that we are in; 0, and a doubt, where something with formatting of its own is open in it. */
static int cell_of(nesting *self) {
    int cell = nearest(self, CELL);
    if (cell && cell == nearest(self, MARKER))
        return cell;
    self->doubt = 1;
    return 0;
}

static void close_paragraph(nesting *self) {
    if (self->table_in_paragraph && self->anchor_count) {
        self->doubt = 1;
        return;
    }
    cut(self, found(self, 'p', SCOPE, TAG_BUTTON, 0));
}

static void close_item(nesting *self, uint16_t tag, uint16_t other) {
    for (int at = self->depth - 1; at > 0; at--) {
        open_element *entry = &self->open[at];
        if ((entry->tag == tag || entry->tag == other) && !entry->foreign) {
            cut(self, at);
            return;
        }
        if (entry->flags & SPECIAL && entry->tag != TAG_ADDRESS && entry->tag != TAG_DIV && entry->tag != TAG_P)
            return;
    }
}

static void end_plain(nesting *self, uint64_t key) {
    for (int at = self->depth - 1; at > 0; at--) {
        open_element *entry = &self->open[at];
        if (entry->key == key && !entry->foreign) {
            if (entry->tag == TAG_NOSCRIPT && at == 1 && self->depth > 2)
                self->doubt = 1; /* in a head it was left for the body by what is open in it */
            else
                cut(self, at);
            return;
        }
        if (entry->flags & SPECIAL)
            return;
    }
}

/* Where the last formatting element of that name since the last marker stands; 0 for none. */
static int formatting_element(nesting *self, uint16_t tag) {
    for (int at = self->depth - 1; at > 0; at--) {
        open_element *entry = &self->open[at];
        if (entry->tag == tag && !entry->foreign)
            return at;
        if (entry->flags & MARKER)
            break;
    }
    return 0;
}

static void end_formatting(nesting *self, uint64_t key, uint16_t tag) {
    uint32_t *count = &self->formatting.counts[FORMATTING_PLACE[tag]];
    int *again = &self->formatting.again[FORMATTING_PLACE[tag]];
    if (!*count) {
        end_plain(self, key);
        return;
    }
    --*count;
    int at = formatting_element(self, tag), last_special = 0;
    int anchor = self->anchor_count ? self->anchors[self->anchor_count - 1] : -1;
    if (anchor > at) {
        self->doubt = 1;
        return;
    }
    if (!at)
        at = *again ? *again : self->depth;
    for (int place = self->depth - 1; place >= at && !last_special; place--)
        if (self->open[place].flags & SPECIAL)
            last_special = place;
    if (anchor == at && last_special) {
        self->doubt = 1;
        return;
    }
    cut(self, last_special ? last_special + 1 : at);
    for (int place = last_special - 1; place >= at; place--) {
        open_element *entry = &self->open[place];
        if (!(entry->flags & SPECIAL) && (entry->tag == tag || !(entry->flags & FORMATTING)))
            take_out(self, place);
    }
    if (!*count)
        *again = 0;
}

static int start_foreign(nesting *self, uint64_t key, uint16_t tag, uint32_t flags, int self_closing) {
    if (holds_text(top(self)->tag) || flags & BREAKOUT || tag == TAG_HTML ||
        (flags & READ && tag != TAG_A && tag != TAG_TITLE)) {
        self->doubt = 1;
        return 0;
    }
    if (tag == TAG_A || !self_closing)
        push(self, key, tag, holds_text(tag) ? SPECIAL | SCOPE : 0, 1, top(self)->mode);
    return tag == TAG_A;
}

/* A body or a row that the page left out. */
static void push_part(nesting *self, uint16_t tag) {
    uint64_t key = tag == TAG_TR ? 0x7274 : 0x79646f6274; /* tr, tbody */
    push(self, key, tag, SPECIAL | BREAK | TABLE | PART, 0, TABLE);
}

static void start_part(nesting *self, uint64_t key, uint16_t tag, uint32_t flags) {
    uint32_t mode = top(self)->mode;
    if (mode & CELL) {
        int cell = cell_of(self);
        if (!cell)
            return;
        cut(self, cell);
    } else if (!(mode & TABLE)) {
        return;
    }
    int table = found_tag(self, TAG_TABLE);
    if (!table)
        return;
    if (tag == TAG_TD || tag == TAG_TH || tag == TAG_TR) {
        int at = self->depth - 1;
        for (; at > table; at--) {
            uint16_t here = self->open[at].foreign ? TAG_OTHER : self->open[at].tag;
            if (tag == TAG_TR ? here == TAG_TBODY || here == TAG_THEAD || here == TAG_TFOOT : here == TAG_TR)
                break;
        }
        cut(self, at + 1);
        if (at == table) {
            push_part(self, TAG_TBODY);
            if (tag != TAG_TR)
                push_part(self, TAG_TR);
        }
    } else {
        cut(self, table + 1);
    }
    if (!(flags & VOID))
        push(self, key, tag, flags, 0, flags & MODES);
}

static void start_formatting(nesting *self, uint64_t key, uint16_t tag) {
    uint32_t *count = &self->formatting.counts[FORMATTING_PLACE[tag]];
    if (tag == TAG_A && *count) {
        end_formatting(self, key, tag);
        *count = 0;
        self->formatting.again[FORMATTING_PLACE[tag]] = 0;
    } else if (tag == TAG_NOBR && *count) {
        if (self->anchor_count) {
            self->doubt = 1;
            return;
        }
        end_formatting(self, key, tag);
    }
    ++*count;
}

static void start_in_body(nesting *self, uint64_t key, uint16_t tag, uint32_t flags, int self_closing) {
    if (tag == TAG_LI)
        close_item(self, TAG_LI, TAG_LI);
    else if (tag == TAG_DD || tag == TAG_DT)
        close_item(self, TAG_DD, TAG_DT);
    if (tag == TAG_TABLE) {
        if (self->anchor_count) {
            self->doubt = 1;
            return;
        }
        self->table_in_paragraph |= self->paragraphs > 0;
    }
    if (flags & CLOSES_P && (self->paragraphs || self->table_in_paragraph))
        close_paragraph(self);
    if (self->doubt || flags & (VOID | RAW | RCDATA))
        return;
    if (flags & FORMATTING)
        start_formatting(self, key, tag);
    else if (flags & HEADING && top(self)->flags & HEADING)
        cut(self, self->depth - 1);
    else if (tag == TAG_BUTTON)
        cut(self, found(self, key, SCOPE, 0, 0));
    else if (tag == TAG_OPTION && top(self)->tag == TAG_OPTION)
        cut(self, self->depth - 1);
    else if (tag == TAG_FORM)
        self->form = 1;
    if (self->doubt)
        return;
    int foreign = tag == TAG_SVG || tag == TAG_MATH;
    if (foreign && self_closing)
        return;
    push(self, key, tag, flags, foreign, flags & MODES ? flags & MODES : top(self)->mode);
}

static int not_in_select(uint16_t tag, uint32_t flags) {
    if (flags & (READ | RCDATA | PART) || (flags & RAW && tag != TAG_SCRIPT))
        return 1;
    switch (tag) {
    case TAG_SVG:
    case TAG_MATH:
    case TAG_TABLE:
    case TAG_SELECT:
    case TAG_INPUT:
    case TAG_KEYGEN:
    case TAG_TEXTAREA:
    case TAG_BUTTON:
    case TAG_OBJECT:
    case TAG_APPLET:
    case TAG_MARQUEE:
        return 1;
    }
    return 0;
}

int nesting_start(nesting *self, uint64_t key, uint16_t tag, uint32_t flags, int self_closing) {
    if (top(self)->foreign)
        return start_foreign(self, key, tag, flags, self_closing);
    if (tag == TAG_HTML || tag == TAG_HEAD || tag == TAG_BODY || tag == TAG_FRAME)
        return tag == TAG_HTML;
    uint32_t mode = top(self)->mode;
    if (mode & SELECT) {
        self->doubt |= not_in_select(tag, flags);
        return 0;
    }
    if (flags & PART) {
        start_part(self, key, tag, flags);
        return 0;
    }
    if (tag == TAG_FORM && self->form)
        return 0;
    if (mode & TABLE) {
        if (tag == TAG_FORM) {
            self->form = 1;
            return 1;
        }
        if (tag == TAG_STYLE || tag == TAG_SCRIPT || tag == TAG_INPUT)
            return 0;
        if (tag == TAG_TABLE) {
            cut(self, found_tag(self, TAG_TABLE));
        } else if (flags & READ) {
            self->doubt = 1;
            return 0;
        }
    }
    start_in_body(self, key, tag, flags, self_closing);
    return 1;
}

static void end_part(nesting *self, uint64_t key) {
    uint32_t mode = top(self)->mode;
    if (!(mode & (TABLE | CELL)))
        return;
    int at = found(self, key, 0, TAG_TABLE, 0);
    if (!at)
        return;
    if (mode & CELL) {
        int cell = cell_of(self);
        if (!cell || cell < at)
            return;
        cut(self, cell);
    }
    if (at < self->depth)
        cut(self, at);
}

static void end_heading(nesting *self) {
    for (int at = self->depth - 1; at > 0 && !(self->open[at].flags & SCOPE); at--)
        if (self->open[at].flags & HEADING) {
            cut(self, at);
            return;
        }
}

void nesting_end(nesting *self, uint64_t key, uint16_t tag, uint32_t flags) {
    if (top(self)->foreign) {
        if (tag == TAG_P || tag == TAG_BR) {
            self->doubt = 1;
            return;
        }
        for (int at = self->depth - 1; at > 0 && self->open[at].foreign; at--)
            if (self->open[at].key == key) {
                cut(self, at);
                return;
            }
    }
    if (tag == TAG_HTML || tag == TAG_HEAD || tag == TAG_BODY || tag == TAG_BR)
        return;
    if (top(self)->mode & SELECT) {
        if (tag == TAG_SELECT)
            cut(self, nearest(self, SELECT));
        else if (tag != TAG_OPTION && tag != TAG_OPTGROUP)
            for (int at = 0; at < self->depth; at++)
                self->doubt |= self->open[at].key == key;
    } else if (tag == TAG_FORM) {
        int at = self->form ? found(self, key, SCOPE, 0, 0) : 0;
        self->form = 0;
        if (at)
            take_out(self, at);
    } else if (flags & (PART | TABLE)) {
        end_part(self, key);
    } else if (flags & FORMATTING) {
        end_formatting(self, key, tag);
    } else if (tag == TAG_P) {
        close_paragraph(self);
    } else if (tag == TAG_LI) {
        cut(self, found(self, key, SCOPE, TAG_OL, TAG_UL));
    } else if (flags & HEADING) {
        end_heading(self);
    } else if (flags & CLOSES) {
        cut(self, found(self, key, SCOPE, 0, 0));
    } else {
        end_plain(self, key);
    }
}
