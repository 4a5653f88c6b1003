-- What a computation over the whole link graph says of domains (R3), as the score of their URLs needs it: for this call.
--
-- Nothing of it is kept here. Workers have the grades, and give that of a host with the links to it. Where URLs come back
-- that nobody has named (they are due, or a cycle has begun), a function asks for the grades of their hosts before it has
-- changed anything of these, and is called again.

local NONE = 255 -- of a host whose domain the computation did not know: then who links to it is counted
local PER_DOUBLING = 8
Grades.NONE = NONE

function Grades.take(name, grade)
  if grade ~= NONE then
    X.grades[name] = grade
  end
end

-- All that a caller has, by host; nil where there was no computation yet: then nobody is asked.
function Grades.given(grades)
  X.graded = grades ~= nil
  for name, grade in pairs(grades or {}) do
    X.grades[name] = grade
  end
end

-- Whether the grade of a host has to be asked for; it is asked for once.
function Grades.lacks(name)
  if not X.graded or X.grades[name] then
    return false
  end
  X.grades[name] = NONE
  X.ungraded[#X.ungraded + 1] = name
  return true
end

-- How many doublings of referring domains speak for a host; and a number that is the same for hosts that are alike in that.
function Grades.heard(host)
  local grade = X.grades[host.name]
  if grade and grade ~= NONE then
    return grade / PER_DOUBLING, -1 - grade
  end
  local _, bits = Policy.referrers(host.ref_hi, host.ref_lo)
  return Policy.DOUBLINGS[bits], bits
end
