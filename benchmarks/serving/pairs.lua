-- A client in a closed loop: ask, confirm what was shown if that is wanted, tell.
-- Arguments: key, path of the experiment, rows per request, "shown" or nothing.
local path, body, confirms, step, ids = "", "", false, "ask", {}
told, unwanted, other = 0, 0, 0 -- rows accepted, rows drawn without stock, and what should not be

function init(args)
  path, body, confirms = args[2], '{"n":' .. args[3] .. "}", args[4] == "shown"
  wrk.headers["authorization"] = "Bearer " .. args[1]
  wrk.headers["content-type"] = "application/json"
end

function request()
  local said = body
  if step == "shown" then
    said = '{"ids":["' .. table.concat(ids, '","') .. '"]}'
  elseif step == "tell" then
    local ends = '","reward":0.5}'
    said = '{"tells":[{"id":"' .. table.concat(ids, ends .. ',{"id":"') .. ends .. "]}"
  end
  return wrk.format("POST", path .. "/" .. step, nil, said)
end

function response(status, headers, said)
  if status ~= 200 then
    other, step = other + 1, "ask"
  elseif step == "ask" then
    ids = {}
    for id in said:gmatch('"id":"([^"]+)"') do
      ids[#ids + 1] = id
    end
    step = confirms and "shown" or "tell"
  elseif step == "shown" then
    step = "tell"
  else
    local _, accepted = said:gsub('"accepted"', "")
    local _, refused = said:gsub('"not wanted"', "")
    told, unwanted, step = told + accepted, unwanted + refused, "ask"
    other = other + #ids - accepted - refused
  end
end

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function done(summary)
  local sum, free, wrong = 0, 0, 0
  for _, thread in ipairs(threads) do
    sum, free = sum + thread:get("told"), free + thread:get("unwanted")
    wrong = wrong + thread:get("other")
  end
  local errors = summary.errors
  wrong = wrong + errors.connect + errors.read + errors.write + errors.timeout
  local rate = sum / summary.duration * 1e6
  io.write(string.format("per second: %f accepted: %d not wanted: %d wrong: %d\n", rate, sum, free, wrong))
end
