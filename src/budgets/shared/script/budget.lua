-- One budget.

-- A budget's state: the probe, then numbers, then six for each window.
local function load(name)
    local budget = budgets[name]
    if budget then
        return budget
    end
    budget = { name = name, windows = {}, dirty = false, unsent = { 0, 0, 0 }, today = { 0, 0, 0 },
        tomorrow = { 0, 0, 0 }, front = 0, next = 0, last_at = 0, running = 0, overruns = 0, most = 0,
        rest = FREE, rest_until = 0, probe = '-', brake = 0, day = 0, day_ends = 0, turns = 0 }
    local line = call('HGET', META, 'b:' .. name)
    if line then
        local v = list_of(line)
        budget.probe = v[1]
        budget.front, budget.next, budget.last_at, budget.running = v[2], v[3], v[4], v[5]
        budget.overruns, budget.most, budget.rest, budget.rest_until = v[6], v[7], v[8], v[9]
        budget.brake, budget.day, budget.day_ends, budget.turns = v[10], v[11], v[12], v[13]
        budget.unsent = { v[14], v[15], v[16] }
        budget.today = { v[17], v[18], v[19] }
        budget.tomorrow = { v[20], v[21], v[22] }
        for i = 23, #v, 6 do
            budget.windows[#budget.windows + 1] = { measure = v[i], length = v[i + 1],
                first = v[i + 2], summed = v[i + 3], sum = v[i + 4], at = v[i + 5] }
        end
    end
    budgets[name] = budget
    return budget
end

local function line_of(b)
    local parts = { format(
        '"%s",%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d', b.probe, b.front, b.next,
        b.last_at, b.running, b.overruns, b.most, b.rest, b.rest_until, b.brake, b.day, b.day_ends,
        b.turns, b.unsent[1], b.unsent[2], b.unsent[3], b.today[1], b.today[2], b.today[3],
        b.tomorrow[1], b.tomorrow[2], b.tomorrow[3]) }
    for _, w in ipairs(b.windows) do
        parts[#parts + 1] = format('%d,%d,%d,%d,%d,%d', w.measure, w.length, w.first, w.summed, w.sum, w.at)
    end
    return '[' .. table.concat(parts, ',') .. ']'
end

local function field(budget, entry)
    return budget.name .. ':' .. int(entry)
end

-- An entry: at, send, input tokens, output tokens. The last three are what it counts, by measure.
local function entry_of(budget, which)
    local line = call('HGET', LOG, field(budget, which))
    if not line then
        lost()
        error('redrive: the log has lost an entry; a new epoch begins')
    end
    return list_of(line)
end

local function put_entry(budget, which, entry)
    call('HSET', LOG, field(budget, which), format('[%d,%d,%d,%d]', entry[1], entry[2], entry[3], entry[4]))
end

local function push(budget, at, counts)
    at = math.max(at, budget.last_at)
    local which = budget.next
    budget.next, budget.last_at, budget.dirty = which + 1, at, true
    if #budget.windows == 0 and budget.front == which then
        budget.front = budget.next
        return which
    end
    put_entry(budget, which, { at, counts[1], counts[2], counts[3] })
    for _, window in ipairs(budget.windows) do
        if window.summed == which then
            window.sum = plus(window.sum, counts[window.measure])
            window.summed = which + 1
        end
    end
    return which
end

local function replace(budget, which, counts)
    if which < budget.front then
        return
    end
    local entry = entry_of(budget, which)
    for _, window in ipairs(budget.windows) do
        if which >= window.first and which < window.summed then
            window.sum = plus(less(window.sum, entry[1 + window.measure]), counts[window.measure])
        end
    end
    put_entry(budget, which, { entry[1], counts[1], counts[2], counts[3] })
    budget.dirty = true
end

-- Lets go of what has left its windows, and sums up windows that are new. What there is too much of for
-- one call is left for the next: until then the budget is behind, and grants nothing.
local function evict(budget)
    budget.behind = false
    local oldest = budget.next
    for _, window in ipairs(budget.windows) do
        local looked = 0
        while window.first < budget.next do
            local entry
            if window.at < 0 then
                entry = entry_of(budget, window.first)
                window.at = entry[1]
                budget.dirty = true
            end
            if now - window.at < window.length then
                break
            end
            if looked >= MOST_ENTRIES then
                budget.behind = true
                break
            end
            if window.first < window.summed then
                entry = entry or entry_of(budget, window.first)
                window.sum = less(window.sum, entry[1 + window.measure])
            else
                window.summed = window.first + 1
            end
            window.first, window.at, looked, budget.dirty = window.first + 1, -1, looked + 1, true
        end
        while window.summed < budget.next do
            if looked >= MOST_ENTRIES then
                budget.behind = true
                break
            end
            local entry = entry_of(budget, window.summed)
            window.sum = plus(window.sum, entry[1 + window.measure])
            window.summed, looked, budget.dirty = window.summed + 1, looked + 1, true
        end
        oldest = math.min(oldest, window.first)
    end
    local gone = {}
    while budget.front < oldest and #gone < 2 * MOST_ENTRIES do
        gone[#gone + 1] = field(budget, budget.front)
        budget.front = budget.front + 1
    end
    if #gone > 0 then
        call('HDEL', LOG, unpack(gone))
        budget.dirty = true
    end
end

local function change_days(budget, first, final, change)
    if final < budget.turns then
        return
    end
    if first <= budget.turns and budget.turns <= final then
        change(budget.today)
    end
    if first <= budget.turns + 1 and budget.turns + 1 <= final then
        change(budget.tomorrow)
    end
    budget.dirty = true
end

local function add(sums, counts)
    for measure = 1, 3 do
        sums[measure] = plus(sums[measure], counts[measure])
    end
end

local function take(sums, counts)
    for measure = 1, 3 do
        sums[measure] = less(sums[measure], counts[measure])
    end
end

-- It is this day, unless one was named that is later, or this one has not begun yet by the one clock.
local function turn(budget, day)
    if day.starts > now then
        return
    end
    if day.number > budget.day then
        budget.turns = budget.turns + 1
        budget.today, budget.tomorrow = budget.tomorrow, { 0, 0, 0 }
    end
    if day.number >= budget.day and (budget.day ~= day.number or budget.day_ends ~= day.ends) then
        budget.day, budget.day_ends, budget.dirty = day.number, day.ends, true
    end
end

local function today(budget, measure)
    local sum = budget.today[measure]
    if now >= budget.day_ends then
        sum = plus(sum, budget.tomorrow[measure])
    end
    return plus(sum, budget.unsent[measure])
end

-- The rest that a provider asked for.
local function rests_until(budget)
    local to = budget.brake
    if budget.rest == UNTIL then
        to = math.max(to, budget.rest_until)
    end
    return now < to and to or nil
end

local function probe_over(budget, id, at, known)
    if budget.rest == PROBING and budget.probe == id then
        budget.rest, budget.probe, budget.rest_until = known and FREE or UNTIL, '-', at
        budget.dirty = true
    end
end
