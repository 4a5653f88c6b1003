-- The modules of this library. Each file fills one of them; `library.py` names the order in which they are joined.
--
-- While a library is loaded a server offers it next to nothing (not even `math`), so all that follows is the body of
-- `begin`, which the first call runs.
local Arith, Policy, Packed, Shard, Hosts, Urls, Queue, Shelves, Traps, Links, Admit, Settle, Claim, Upkeep, Tell, Orders =
  {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
local Known, Later, Move, Spill, Grades = {}, {}, {}, {}, {}
local X -- the shard that is worked on, while a function runs: see shard.lua
