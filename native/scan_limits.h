/* Written by tools/scan_tables.py from the tables of nephila.parse: change those. */
enum {
    DEEPEST = 200,
    MOST_ANCHORS = 8,
    MAX_TAGS = 290000,
    MAX_ANCHOR_TEXT = 1000000,
    MAX_REFERENCES = 20000,
    MAX_METAS = 1000,
    MAX_TEXT = 200,
    MAX_TITLE = 1000,
    MAX_WORDS = 50000,
    LEAST_BLOCK = 10,
    LINK_SHARE = 3,
    LOOSE_LINK_SHARE = 2,
    LEAST_TEXT = 30,
    LITTLE_TEXT = 100,
    LINKS_OVER_TEXT = 2,
    LEAST_WORDS = 20,
    PLACES = 64,
    LOOK_WORDS = 1000,
    LEAST_HITS = 3,
    LEAST_SHARE = 12,
    LONGEST_LEGACY = 6,
    LONGEST_JOINED = 64,
};

#define SEED UINT64_C(0x9e3779b97f4a7c15)
#define FACTOR UINT64_C(0xd6e8feb86659fd93)
#define LAST_FACTOR UINT64_C(0xc2b2ae3d27d4eb4f)
#define RUN_FIRST UINT64_C(0x9fb21c651e98df25)
#define RUN_SECOND UINT64_C(0xa24baed4963ee407)
#define RUN_THIRD UINT64_C(0x8ebc6af09c88c6e3)

enum {
    SPECIAL = 0x1,
    FORMATTING = 0x2,
    VOID = 0x4,
    CLOSES_P = 0x8,
    BREAK = 0x10,
    RAW = 0x20,
    RCDATA = 0x40,
    SCOPE = 0x80,
    MARKER = 0x100,
    HEADING = 0x200,
    READ = 0x400,
    BREAKOUT = 0x800,
    TABLE = 0x1000,
    CELL = 0x2000,
    PART = 0x4000,
    FRAME = 0x8000,
    CLOSES = 0x10000,
    SELECT = 0x20000,
};
