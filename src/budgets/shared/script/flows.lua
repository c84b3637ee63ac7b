-- Whose turn it is.
--
-- A budget may be shared fairly between flows, across pods: start-time fair queueing as in
-- `crate::limits::fairness`, where the reasons stand. Nobody queues here: a flow waits from a denial until its
-- pods should have asked again. Its lead is how much of the budget's time it took over its weight, counted from
-- where the last of those that wait is; whoever leads by more than a little is held back.

-- Flows that are known of a budget at most.
local MOST_FLOWS = 64
-- A microsecond of lead, so that weights divide.
local FINE = 1024
-- Who waits asks again after so long at the latest, and where nobody knows when after so long; so long at least
-- and at most it is waited for then, and so long it is held back at a time.
local ASKS_AGAIN, ASKS_SOON, LEAST_GRACE, MOST_GRACE, HELD_BACK = 1000000, 200000, 20000, 200000, 100000
-- Of a window: how late one may ask again, how far one may be ahead.
local GRACE, SLACK = 1 / 100, 3 / 100

-- How much time of a budget a send takes, and of how much: of the window, else of the day, of which it takes
-- the most; else of the sends at a time.
local function share(limits, counts)
    local all, day = limits.windows, nil
    if #all == 0 then
        all, day = limits.daily, 1000 * A_DAY
    end
    local cost, whole
    for _, one in ipairs(all) do
        local length = one.window or day
        local takes = math.min(floor(counts[one.measure] * length / math.max(one.limit, 1)), MOST)
        if not cost or takes > cost then
            cost, whole = takes, length
        end
    end
    if not cost then
        return 1, math.max(limits.concurrent, 1)
    end
    return math.max(cost, 1), whole
end

-- Flows: name, lead, until when it waits, which budget stood in its way.
local function flows_of(name)
    local line = call('HGET', META, 't:' .. name)
    local v, flows = line and list_of(line) or {}, {}
    for i = 1, #v, 4 do
        flows[v[i]] = { lead = v[i + 1], waits = v[i + 2], by = v[i + 3] }
    end
    return flows
end

-- Those that lead nobody and wait for nothing are as good as new ones.
local function put_flows(name, flows)
    local kept = {}
    for flow, of in pairs(flows) do
        if of.waits > now or of.lead > 0 then
            kept[#kept + 1] = flow
        end
    end
    table.sort(kept, function(one, other)
        one, other = flows[one], flows[other]
        if one.waits ~= other.waits then
            return one.waits > other.waits
        end
        return one.lead > other.lead
    end)
    local parts = {}
    for i = 1, math.min(#kept, MOST_FLOWS) do
        local of = flows[kept[i]]
        parts[i] = format('"%s",%d,%d,"%s"', kept[i], of.lead, of.waits, of.by)
    end
    if #parts > 0 then
        call('HSET', META, 't:' .. name, '[' .. table.concat(parts, ',') .. ']')
    else
        call('HDEL', META, 't:' .. name)
    end
end

-- One who asks for its turn in one of these budgets.
local function lines_up(all, index, flow, weight, counts)
    local one = all[index + 1]
    local line = { index = index, name = one.name, flow = flow, weight = weight, flows = flows_of(one.name) }
    line.cost, line.whole = share(one.own, counts)
    line.grace = math.max(math.min(floor(line.whole * GRACE), MOST_GRACE), LEAST_GRACE)
    line.own = line.flows[flow] or { lead = 0, waits = 0, by = '-' }
    -- Who waits for a budget that this one does not ask for is not in its way.
    local asks_for = {}
    for _, other in ipairs(all) do
        asks_for[other.name] = true
    end
    for name, of in pairs(line.flows) do
        local before = not line.first or of.lead < line.first.lead
        if name ~= flow and of.waits > now and asks_for[of.by] and before then
            line.first = of
        end
    end
    return line
end

-- For how long it is held back, if it is.
local function held_back(line)
    local first = line.first
    if first and (line.own.lead - first.lead) * line.weight > line.whole * SLACK * FINE then
        return math.min(first.waits - now, HELD_BACK)
    end
end

-- It was denied, by which budget, and for how long (-1: unknown).
local function waits(line, by, wait)
    wait = wait < 0 and ASKS_SOON or math.min(wait, ASKS_AGAIN)
    local own = line.own
    own.waits, own.by = now + wait + line.grace, by
    line.flows[line.flow] = own
    put_flows(line.name, line.flows)
end

-- It was granted. Whoever waits behind it asks at once; others of its flow may, if it waited itself.
local function is_served(line, more)
    local own, first = line.own, line.first
    local waited = own.waits > now
    if not waited and not next(line.flows) then
        return
    end
    local base = first and math.min(first.lead, own.lead) or own.lead
    own.lead = own.lead + math.max(floor(line.cost * FINE / line.weight), 1)
    own.waits, own.by = waited and now + (more and MOST_GRACE or line.grace) or 0, line.name
    line.flows[line.flow] = own
    for _, of in pairs(line.flows) do
        of.lead = less(of.lead, base)
    end
    put_flows(line.name, line.flows)
end
