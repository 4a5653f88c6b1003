-- Numbers as the pure rules in Python have them: rounding, logarithms, and the two hashes that the order needs.
--
-- Lua here knows doubles only: 64 bits are two halves of 32, and a product is made of 16-bit limbs. What must stay
-- true: for the same input the same answer as `nephila.frontier.order`, so that every engine draws alike.


local floor = math.floor
local band, bxor, bor, lshift, rshift, rol, bswap = bit.band, bit.bxor, bit.bor, bit.lshift, bit.rshift, bit.rol, bit.bswap
local LOG2 = math.log(2)
local TWO32 = 4294967296

local function unsigned(number)
  return number < 0 and number + TWO32 or number
end

-- To the nearest whole number, halves to the even one, as Python rounds.
function Arith.round(number)
  local whole = floor(number)
  local rest = number - whole
  if rest > 0.5 or (rest == 0.5 and whole % 2 == 1) then
    return whole + 1
  end
  return whole
end

function Arith.log2(number)
  return math.log(number) / LOG2
end

local function mul32(a, b)
  local low, high = a % 65536, floor(a / 65536)
  return (low * b + (high * b % 65536) * 65536) % TWO32
end

-- The product of two 64-bit numbers, each as (high, low).
local function mul64(ah, al, bh, bl)
  local a0, a1 = al % 65536, floor(al / 65536)
  local b0, b1 = bl % 65536, floor(bl / 65536)
  local low = a0 * b0
  local mid = a1 * b0 + floor(low / 65536)
  local mid2 = a0 * b1 + mid % 65536
  local carry = a1 * b1 + floor(mid / 65536) + floor(mid2 / 65536)
  local lo = (mid2 % 65536) * 65536 + low % 65536
  local hi = (carry + mul32(ah, bl) + mul32(al, bh)) % TWO32
  return hi, lo
end

local function rotl64(hi, lo, by)
  if by >= 32 then
    hi, lo, by = lo, hi, by - 32
  end
  if by == 0 then
    return hi, lo
  end
  return unsigned(bor(lshift(hi, by), rshift(lo, 32 - by))), unsigned(bor(lshift(lo, by), rshift(hi, 32 - by)))
end

local PRIME_HI, PRIME_LO = 0x9FB21C65, 0x1E98DF25

-- xxh3-64 of a number as eight bytes, modulo `total`; the seed comes as the number it flips bits with (two halves).
function Arith.point(draw, flip_hi, flip_lo, total)
  local hi = unsigned(bxor(bswap(floor(draw / TWO32)), flip_hi))
  local lo = unsigned(bxor(bswap(draw % TWO32), flip_lo))
  local h49, l49 = rotl64(hi, lo, 49)
  local h24, l24 = rotl64(hi, lo, 24)
  hi, lo = unsigned(bxor(hi, h49, h24)), unsigned(bxor(lo, l49, l24))
  hi, lo = mul64(hi, lo, PRIME_HI, PRIME_LO)
  -- h ^= (h >> 35) + 8
  lo = unsigned(bxor(lo, rshift(hi, 3) + 8))
  hi, lo = mul64(hi, lo, PRIME_HI, PRIME_LO)
  -- h ^= h >> 28
  local shifted_lo = bor(rshift(lo, 28), lshift(hi, 4))
  hi, lo = unsigned(bxor(hi, rshift(hi, 28))), unsigned(bxor(lo, shifted_lo))
  return ((hi % total) * (TWO32 % total) + lo) % total
end

local P1, P2, P3, P4, P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393

local function round32(lane, word)
  return mul32(unsigned(rol((lane + mul32(word, P2)) % TWO32, 13)), P1)
end

-- xxh32 of some bytes, as four bytes: what breaks ties.
function Arith.tie(text, seed)
  local at, length, hash = 1, #text, 0
  if length >= 16 then
    local v1, v2, v3, v4 = (seed + P1 + P2) % TWO32, (seed + P2) % TWO32, seed, (seed - P1) % TWO32
    while at + 15 <= length do
      local w1, w2, w3, w4 = struct.unpack('<I4I4I4I4', text:sub(at, at + 15))
      v1, v2, v3, v4 = round32(v1, w1), round32(v2, w2), round32(v3, w3), round32(v4, w4)
      at = at + 16
    end
    hash = unsigned(rol(v1, 1)) + unsigned(rol(v2, 7)) + unsigned(rol(v3, 12)) + unsigned(rol(v4, 18))
  else
    hash = seed + P5
  end
  hash = (hash + length) % TWO32
  while at + 3 <= length do
    local word = struct.unpack('<I4', text:sub(at, at + 3))
    hash = mul32(unsigned(rol((hash + mul32(word, P3)) % TWO32, 17)), P4)
    at = at + 4
  end
  while at <= length do
    hash = mul32(unsigned(rol((hash + text:byte(at) * P5) % TWO32, 11)), P1)
    at = at + 1
  end
  hash = mul32(unsigned(bxor(hash, rshift(hash, 15))), P2)
  hash = mul32(unsigned(bxor(hash, rshift(hash, 13))), P3)
  return struct.pack('>I4', unsigned(bxor(hash, rshift(hash, 16))))
end

local BITS = {}
for byte = 0, 255 do
  local count, rest = 0, byte
  while rest > 0 do
    count, rest = count + rest % 2, floor(rest / 2)
  end
  BITS[byte] = count
end

local MOST_COUNTED = 20000
local counted, known = {}, 0 -- of words that were asked for of late: hosts are linked to again and again

local function bits_in(word)
  local count = counted[word]
  if not count then
    local low = word % 65536
    local high = (word - low) / 65536
    count = BITS[low % 256] + BITS[floor(low / 256)] + BITS[high % 256] + BITS[floor(high / 256)]
    if known >= MOST_COUNTED then
      counted, known = {}, 0
    end
    counted[word], known = count, known + 1
  end
  return count
end

-- The number of bits set in a bitmap of 64, given as two halves.
function Arith.bits(hi, lo)
  return bits_in(hi) + bits_in(lo)
end

function Arith.has_bit(word, at)
  return band(word, lshift(1, at)) ~= 0
end

function Arith.with_bit(word, at)
  return unsigned(bor(word, lshift(1, at)))
end
