-- What is configured.

-- A budget's limits: most entries, margin, refund, sends at a time (-1: any), how many windows, then
-- measure, limit and window of each, then measure and limit of each cap of a day.
local function limits_of(line)
    local v = list_of(line)
    local limits = { most = v[1], margin = v[2], refund = v[3], concurrent = v[4], windows = {}, daily = {} }
    local from = 6 + 3 * v[5]
    for i = 6, from - 1, 3 do
        limits.windows[#limits.windows + 1] = { measure = v[i], limit = v[i + 1], window = v[i + 2] }
    end
    for i = from, #v, 2 do
        limits.daily[#limits.daily + 1] = { measure = v[i], limit = v[i + 1] }
    end
    return limits
end

local function stricter(own, others)
    for _, other in ipairs(others) do
        local same = false
        for _, mine in ipairs(own) do
            if mine.measure == other.measure and mine.window == other.window then
                mine.limit, same = math.min(mine.limit, other.limit), true
            end
        end
        if not same then
            own[#own + 1] = other
        end
    end
end

-- The first limit that is smaller than what is asked for.
local function never_fits(limits, counts)
    for _, window in ipairs(limits.windows) do
        if counts[window.measure] > window.limit then
            return { 'window', window.measure, window.limit, window.window }
        end
    end
    for _, daily in ipairs(limits.daily) do
        if counts[daily.measure] > daily.limit then
            return { 'daily', daily.measure, daily.limit, 0 }
        end
    end
    if limits.concurrent == 0 then
        return { 'concurrent', 0, 0, 0 }
    end
end

-- Fits the state of a budget to its limits. A window that is new to it is summed up from the log.
local function fit(budget, limits)
    local windows = {}
    for _, window in ipairs(limits.windows) do
        local length, state = window.window + limits.margin, nil
        for _, known in ipairs(windows) do
            if known.measure == window.measure and known.length == length then
                state = known
            end
        end
        if not state then
            for _, known in ipairs(budget.windows) do
                if known.measure == window.measure and known.length == length then
                    state = known
                end
            end
            if not state then
                state = { measure = window.measure, length = length, first = budget.front,
                    summed = budget.front, sum = 0, at = -1 }
                budget.dirty = true
            end
            windows[#windows + 1] = state
        end
        window.state = state
    end
    if #windows ~= #budget.windows then
        budget.dirty = true
    end
    budget.windows, budget.most = windows, limits.most
end

-- The budgets of a call: name, limits, number of the day, when it starts and ends.
local function asked()
    in_use(false)
    local stored = other_revision and call('HGET', META, 'c:' .. other_revision)
    local found = {}
    for i = 1, number() do
        local name, line = text(), text()
        local own = limits_of(line)
        local one = { name = name, own = own, limits = own }
        one.day = { number = number(), starts = number(), ends = number() }
        local pattern = '\n' .. string.gsub(name, '%p', '%%%0') .. ' ([^\n]+)'
        local theirs = stored and string.match('\n' .. stored, pattern)
        if theirs then
            theirs = limits_of(theirs)
            one.limits = limits_of(line)
            one.limits.margin = math.max(own.margin, theirs.margin)
            one.limits.most = math.min(own.most, theirs.most)
            stricter(one.limits.windows, theirs.windows)
            stricter(one.limits.daily, theirs.daily)
            if theirs.concurrent >= 0 then
                local mine = own.concurrent >= 0 and own.concurrent or theirs.concurrent
                one.limits.concurrent = math.min(mine, theirs.concurrent)
            end
        end
        found[i] = one
    end
    return found
end

-- Until when it is not known what a budget granted before the epoch. What was sent then may be in a window,
-- whoever sent it. What still runs is of a pod that lives: it tells within a life, or cuts what it sent.
-- What a day took is not made good.
local function learns_until(one)
    local longest = -1
    for _, window in ipairs(one.limits.windows) do
        longest = math.max(longest, window.window + one.limits.margin + known_unsent)
    end
    if one.limits.concurrent >= 0 and witnessed then
        longest = math.max(longest, known_life, known_unsent)
    end
    return since + longest
end

-- When enough has left a window, if each unsent lease is sent at the last moment.
local function frees(budget, window, excess)
    local left, unsent = excess, budget.unsent[window.measure]
    local state = window.state
    for which = state.first, math.min(budget.next, state.first + MOST_ENTRIES) - 1 do
        local entry = entry_of(budget, which)
        if entry[1] > last_end then
            left, unsent = less(left, unsent), 0
            if left == 0 then
                break
            end
        end
        left = less(left, entry[1 + window.measure])
        if left == 0 or which == state.first + MOST_ENTRIES - 1 then
            return entry[1] + state.length
        end
    end
    return last_end + state.length
end

-- Whether the log is too full for one more send.
local function forgets(budget, limits)
    local reserved = budget.next - budget.front + budget.running + budget.unsent[REQUESTS]
    local excess = reserved + 2 - limits.most
    local longest
    for _, window in ipairs(limits.windows) do
        if not longest or window.window >= longest.window then
            longest = window
        end
    end
    if excess <= 0 or not longest then
        return nil
    end
    local at = last_end
    if budget.front + excess - 1 < budget.next then
        at = entry_of(budget, budget.front + excess - 1)[1]
    end
    return longest, at + longest.state.length
end

-- What stands in the way the longest; unknown (-1) is before everything known.
local function check(one, counts)
    local budget, limits = load(one.name), one.limits
    fit(budget, limits)
    if #limits.daily > 0 then
        turn(budget, one.day)
    end
    evict(budget)
    local full
    local function note(to, kind, measure, limit, window)
        if not full or to > full.to then
            full = { to = to, what = { kind, measure, limit, window } }
        end
    end
    local rests = rests_until(budget)
    if rests then
        note(rests, 'cooldown', 0, 0, 0)
    end
    if budget.rest == PROBING then
        note(-1, 'probe', 0, 0, 0)
    end
    local worst, to = forgets(budget, limits)
    for _, window in ipairs(limits.windows) do
        local measure = window.measure
        local used = window.state.sum + budget.unsent[measure]
        local excess = used + counts[measure] - window.limit
        if counts[measure] > 0 and excess > 0 then
            local then_ = frees(budget, window, excess)
            if not worst or to < then_ then
                worst, to = window, then_
            end
        end
    end
    if budget.behind then
        worst, to = limits.windows[1], now + 1000
    end
    if worst then
        note(math.max(to, now + 1), 'window', worst.measure, worst.limit, worst.window)
    end
    for _, daily in ipairs(limits.daily) do
        local more = counts[daily.measure]
        if more > 0 and today(budget, daily.measure) + more > daily.limit then
            note(math.max(budget.day_ends, now + 1), 'daily', daily.measure, daily.limit, 0)
        end
    end
    if limits.concurrent >= 0 and budget.running >= limits.concurrent then
        note(-1, 'concurrent', 0, limits.concurrent, 0)
    end
    return full
end

-- Which tokens are limited: 2 of the prompt, 4 of the answer.
local function limited_by(limits)
    local found = { [2] = 0, [3] = 0 }
    for _, all in ipairs({ limits.windows, limits.daily }) do
        for _, one in ipairs(all) do
            found[one.measure] = 1
        end
    end
    return 2 * found[2] + 4 * found[3]
end

local function grant(lease, asked_for)
    for i, one in ipairs(asked_for) do
        local budget = load(one.name)
        add(budget.unsent, lease.counts)
        budget.running, budget.dirty = budget.running + 1, true
        if budget.rest == UNTIL and budget.rest_until <= now then
            budget.rest, budget.probe = PROBING, lease.id
        end
        lease.parts[i] = { entry = 0, first = 0, final = 0, refund = one.own.refund,
            limited = limited_by(one.limits), margin = one.limits.margin, name = one.name }
    end
    last_end = math.max(last_end, lease.ends)
    dirty = true
end
