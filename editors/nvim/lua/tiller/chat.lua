-- Chat window: the transcript of a session, and below it a buffer in which prompts are written.
local M = {}
local api, namespace = vim.api, vim.api.nvim_create_namespace("tiller.chat")
local HEADINGS = { user = "## You", assistant = "## Tiller", custom = "## Extension" }

local function buffer_of(session, kind)
  local buffer = vim.fn.bufadd("tiller://" .. kind .. session.root)
  if not api.nvim_buf_is_loaded(buffer) then
    vim.bo[buffer].swapfile, vim.bo[buffer].buftype = false, "nofile"
    vim.fn.bufload(buffer)
    vim.bo[buffer].bufhidden, vim.bo[buffer].filetype = "hide", "markdown"
  end
  return buffer
end

-- Changes the transcript. A window that was scrolled back stays where it is, others follow the end.
local function edit(session, change)
  local buffer = buffer_of(session, "chat")
  local before = api.nvim_buf_line_count(buffer)
  vim.bo[buffer].modifiable = true
  change(buffer, before - 1, api.nvim_buf_get_lines(buffer, before - 1, -1, true)[1])
  vim.bo[buffer].modifiable, vim.bo[buffer].modified = false, false
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local is_at_end = api.nvim_win_get_cursor(window)[1] == before
    if is_at_end then api.nvim_win_set_cursor(window, { api.nvim_buf_line_count(buffer), 0 }) end
  end
end

local function append(session, text)
  edit(session, function(buffer, row, line)
    api.nvim_buf_set_text(buffer, row, #line, row, #line, vim.split(text, "\n", { plain = true }))
  end)
end

local function begin(session, role, item)
  if session.item == item then return end
  append(session, session.role ~= role and ("\n\n" .. HEADINGS[role] .. "\n\n") or "\n\n")
  session.role, session.item = role, item
end

local function note(session, text)
  append(session, "\n> " .. text:gsub("%s*\n%s*", " "))
  session.item = nil
end

local function tool(session, event)
  local line = session.tools[event.item] or { title = event.name or "tool" }
  line.title = (event.title or line.title):gsub("%s*\n%s*", " ")
  local text = "> " .. line.title .. (event.status and " · " .. event.status or "")
  if not line.mark then begin(session, "assistant", event.item) end
  edit(session, function(buffer, row, last)
    local at = line.mark and api.nvim_buf_get_extmark_by_id(buffer, namespace, line.mark, {})[1] or row
    last = line.mark and api.nvim_buf_get_lines(buffer, at, at + 1, true)[1] or last
    api.nvim_buf_set_text(buffer, at, 0, at, #last, { text })
    line.mark = line.mark or api.nvim_buf_set_extmark(buffer, namespace, at, 0, { right_gravity = false })
  end)
  session.tools[event.item] = line
end

M.events = {
  ["message.delta"] = function(session, event)
    begin(session, "assistant", event.item)
    append(session, event.text)
    session.shown[event.item] = true
  end,
  ["message.ended"] = function(session, event)
    local texts = vim.tbl_map(function(block) return block.text or "[" .. block.type .. "]" end, event.content)
    if session.shown[event.item] or #texts == 0 then return end
    begin(session, event.role, event.item)
    append(session, table.concat(texts, "\n"))
    session.shown[event.item] = true
  end,
  ["tool.started"] = tool, ["tool.running"] = tool, ["tool.ended"] = tool,
  ["permission.requested"] = function(session, event) note(session, "waits for you: " .. event.request.title) end,
  ["notice"] = function(session, event) note(session, event.text) end,
  ["run.ended"] = function(session, event)
    note(session, event.error and (event.error.happened or event.error.message) or event.status)
  end,
}
local ITEMS = { message = M.events["message.ended"], tool = tool, ["end"] = M.events["run.ended"] }

function M.fill(session, items)
  session.tools, session.shown, session.role, session.item = {}, {}, nil, nil
  edit(session, function(buffer) api.nvim_buf_set_lines(buffer, 0, -1, true, {}) end)
  for _, item in ipairs(items) do
    if ITEMS[item.kind] then ITEMS[item.kind](session, item) end
  end
end

function M.show(session, send)
  local transcript, prompt = buffer_of(session, "chat"), buffer_of(session, "prompt")
  local window = vim.fn.win_findbuf(prompt)[1]
  if window then return api.nvim_set_current_win(window) end
  vim.cmd("botright vertical sbuffer " .. transcript)
  api.nvim_win_set_cursor(0, { api.nvim_buf_line_count(transcript), 0 })
  vim.cmd("belowright sbuffer " .. prompt .. " | resize 5")
  for keys, delivery in pairs({ ["<CR>"] = "auto", ["<C-s>"] = "auto", ["<C-q>"] = "followUp" }) do
    vim.keymap.set(keys == "<C-s>" and "i" or "n", keys, function()
      send(session, table.concat(api.nvim_buf_get_lines(prompt, 0, -1, true), "\n"), delivery)
      api.nvim_buf_set_lines(prompt, 0, -1, true, {})
    end, { buffer = prompt })
  end
  vim.keymap.set("n", "<C-c>", "<Cmd>Tiller stop<CR>", { buffer = prompt })
end

return M
