-- Signs beside the changes of the agent that wait for a decision, and the decisions.
local M = {}
local api, namespace = vim.api, vim.api.nvim_create_namespace("tiller.changes")
local marks = {} -- Hunk ids by buffer and extmark.

function M.place(session, buffer)
  marks[buffer] = {}
  api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local last = api.nvim_buf_line_count(buffer) - 1
  for _, hunk in ipairs(session.hunks[api.nvim_buf_get_name(buffer)] or {}) do
    local kind = hunk.newText == "" and "_Delete" or hunk.oldText == "" and "+Add" or "~Change"
    local options = { sign_text = kind:sub(1, 1), sign_hl_group = "Diff" .. kind:sub(2) }
    for row = hunk.after.start.line, math.max(hunk.after.start.line, hunk.after["end"].line - 1) do
      marks[buffer][api.nvim_buf_set_extmark(buffer, namespace, math.min(row, last), 0, options)] = hunk.id
    end
  end
end

function M.refresh(session)
  session.request("agent/changes/list", vim.empty_dict(), function(changes)
    session.hunks, session.change_set = {}, changes.id
    for _, file in ipairs(changes.files) do
      local pending = vim.tbl_filter(function(hunk) return hunk.state == "pending" end, file.hunks)
      session.hunks[vim.uri_to_fname(file.uri)] = pending
    end
    for buffer in pairs(session.buffers) do
      if api.nvim_buf_is_loaded(buffer) then M.place(session, buffer) end
    end
  end)
end

function M.resolve(session, action, all)
  local buffer, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local mark = api.nvim_buf_get_extmarks(buffer, namespace, { row, 0 }, { row, -1 }, {})[1]
  local item = all and { changeSet = session.change_set } or mark and { hunk = marks[buffer][mark[1]] }
  if not item then return vim.notify("Tiller: no change of the agent waits in this line") end
  item.action = action
  session.request("agent/changes/resolve", { items = { item } }, function(answer)
    local status = answer.results[1].status
    if status ~= "done" then vim.notify("Tiller: the change could not be " .. action .. "ed: " .. status) end
    M.refresh(session)
  end)
end

function M.jump(step)
  local row, previous = api.nvim_win_get_cursor(0)[1] - 1, nil
  local starts = vim.tbl_filter(function(mark)
    local hunk, before = marks[api.nvim_get_current_buf()][mark[1]], previous
    previous = hunk
    return hunk ~= before and (mark[2] - row) * step > 0
  end, api.nvim_buf_get_extmarks(0, namespace, 0, -1, {}))
  local target = starts[step > 0 and 1 or #starts]
  if target then api.nvim_win_set_cursor(0, { target[2] + 1, 0 }) end
end

return M
