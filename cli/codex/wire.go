package codex

import "encoding/json"

// event is one line of `codex exec --json`.
type event struct {
	Type     string    `json:"type"`
	ThreadID string    `json:"thread_id"`
	Item     *item     `json:"item"`
	Usage    *usage    `json:"usage"`
	Message  string    `json:"message"`
	Error    *apiError `json:"error"`
}

type apiError struct {
	Message string `json:"message"`
}

type usage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	CacheNew  int64 `json:"cache_write_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

// item is one thing a turn is made of; which fields count depends on Type.
type item struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	Text    string `json:"text"`    // agent_message, reasoning
	Message string `json:"message"` // error: a warning

	Command  string `json:"command"` // command_execution
	Output   string `json:"aggregated_output"`
	ExitCode *int   `json:"exit_code"`

	Changes []change `json:"changes"` // file_change

	Server    string          `json:"server"` // mcp_tool_call
	Tool      string          `json:"tool"`   // mcp_tool_call, collab_tool_call
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     *apiError       `json:"error"`

	Prompt string `json:"prompt"` // collab_tool_call
	Query  string `json:"query"`  // web_search
	Items  []todo `json:"items"`  // todo_list
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type todo struct {
	Text      string `json:"text"`
	Completed bool   `json:"completed"`
}

// The item types.
const (
	itemMessage   = "agent_message"
	itemReasoning = "reasoning"
	itemCommand   = "command_execution"
	itemFiles     = "file_change"
	itemMCP       = "mcp_tool_call"
	itemCollab    = "collab_tool_call"
	itemSearch    = "web_search"
	itemTodo      = "todo_list"
	itemError     = "error"
)
