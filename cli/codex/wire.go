package codex

import (
	"cmp"
	"encoding/json"
	"slices"

	"ductor/cli"
)

// event is one output line of `codex exec --json`.
type event struct {
	Type     string    `json:"type"`
	ThreadID string    `json:"thread_id"`
	Item     *liveItem `json:"item"`
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

// todo is an entry of the to-do list in the output of `codex exec`.
type todo struct {
	Text      string `json:"text"`
	Completed bool   `json:"completed"`
}

// Types of items, as the app server writes them. `codex exec` writes them with underscores.
const (
	itemMessage   = "agentMessage"
	itemReasoning = "reasoning"
	itemCommand   = "commandExecution"
	itemFiles     = "fileChange"
	itemMCP       = "mcpToolCall"
	itemCollab    = "collabAgentToolCall"
	itemSearch    = "webSearch"
	itemTodo      = "todoList" // only in `codex exec`
	itemError     = "error"    // a warning; only in `codex exec`
)

// notice contains the parameters of a notification. The method determines which fields are used.
type notice struct {
	ThreadID cli.AgentSessionID `json:"threadId"`
	TurnID   string             `json:"turnId"`
	ItemID   string             `json:"itemId"`
	Delta    string             `json:"delta"`
	Message  string             `json:"message"`   // only in warning
	Request  json.RawMessage    `json:"requestId"` // only in serverRequest/resolved
	Thread   threadInfo         `json:"thread"`    // only in thread/started

	Item *liveItem `json:"item"`
	Turn *turnInfo `json:"turn"`

	Error     *turnError `json:"error"`
	WillRetry bool       `json:"willRetry"`

	Plan []planStep `json:"plan"` // only in turn/plan/updated

	TokenUsage tokenUsage `json:"tokenUsage"`

	RateLimits rateLimits `json:"rateLimits"`

	helper bool // whether a sub-agent's thread sent the notification

	ToModel string `json:"toModel"` // only in model/rerouted
	Changes patch  `json:"changes"` // only in item/fileChange/patchUpdated
}

type threadInfo struct {
	ID     cli.AgentSessionID `json:"id"`
	Parent cli.AgentSessionID `json:"parentThreadId"`
}

// turnInfo describes the turn in a "turn/started" or "turn/completed" notification.
type turnInfo struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Error  *turnError `json:"error"`
}

// turnInfo.Status values.
const (
	turnCompleted   = "completed"
	turnInterrupted = "interrupted"
	turnFailed      = "failed"
)

// turnError is the failure of a turn, or of a request to the model. Info is a name, or an object whose only key is a
// name.
type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

type tokenUsage struct {
	Total  liveUsage `json:"total"`
	Last   liveUsage `json:"last"`
	Window int64     `json:"modelContextWindow"`

	fill cli.Fill
}

type planStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

type liveUsage struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	CacheNew  int64 `json:"cacheWriteInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
	Sum       int64 `json:"totalTokens"`
}

// liveItem is an item of a turn: a message, a tool call or reasoning. Type determines which fields are used.
type liveItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	ClientID string `json:"clientId"` // only in userMessage: the ID that ductor chose

	Text    string `json:"text"`    // only in agentMessage and plan; in `codex exec` also in reasoning
	Phase   string `json:"phase"`   // only in agentMessage: commentary or final_answer
	Message string `json:"message"` // only in error

	Summary []string        `json:"summary"` // only in reasoning
	Content json.RawMessage `json:"content"` // strings in reasoning, objects in userMessage

	Command    string `json:"command"` // only in commandExecution
	Output     string `json:"aggregatedOutput"`
	ExitCode   *int   `json:"exitCode"`
	DurationMs *int64 `json:"durationMs"`

	Changes patch  `json:"changes"` // only in fileChange
	Items   []todo `json:"items"`   // only in todoList

	Server       string          `json:"server"`    // only in mcpToolCall
	Namespace    string          `json:"namespace"` // only in dynamicToolCall
	Tool         string          `json:"tool"`      // only in mcpToolCall, dynamicToolCall and collabAgentToolCall
	Arguments    json.RawMessage `json:"arguments"`
	Result       json.RawMessage `json:"result"`
	ContentItems json.RawMessage `json:"contentItems"`
	Error        *apiError       `json:"error"`

	Prompt    string               `json:"prompt"`            // only in collabAgentToolCall
	Receivers []cli.AgentSessionID `json:"receiverThreadIds"` // only in collabAgentToolCall: the threads of sub-agents
	Query     string               `json:"query"`             // only in webSearch
	Path      string               `json:"path"`              // only in imageView
	Revised   string               `json:"revisedPrompt"`     // only in imageGeneration, once the picture exists
	SavedPath string               `json:"savedPath"`         // only in imageGeneration, once the picture exists
}

// UnmarshalJSON also accepts the format of `codex exec`.
func (it *liveItem) UnmarshalJSON(raw []byte) error {
	type plain liveItem
	exec := struct {
		*plain
		Output   string `json:"aggregated_output"`
		ExitCode *int   `json:"exit_code"`
	}{plain: (*plain)(it)}
	if err := json.Unmarshal(raw, &exec); err != nil {
		return err
	}
	it.Output, it.ExitCode = cmp.Or(it.Output, exec.Output), cmp.Or(it.ExitCode, exec.ExitCode)
	if own := map[string]string{
		"agent_message": itemMessage, "command_execution": itemCommand, "file_change": itemFiles, "mcp_tool_call": itemMCP,
		"collab_tool_call": itemCollab, "web_search": itemSearch, "todo_list": itemTodo,
	}[it.Type]; own != "" {
		it.Type = own
	}
	return nil
}

// patch contains the changes of a fileChange item. It keeps the original JSON, because users must also see values that
// ductor does not know.
type patch struct {
	files []liveChange
	raw   json.RawMessage
}

// UnmarshalJSON never returns an error. An unreadable patch has no files, so no user can allow it.
func (p *patch) UnmarshalJSON(raw []byte) error {
	p.raw = slices.Clone(raw)
	if json.Unmarshal(raw, &p.files) != nil {
		p.files = nil
	}
	return nil
}

type liveChange struct {
	Path string     `json:"path"`
	Kind changeKind `json:"kind"`
	Diff string     `json:"diff"`
}

type changeKind struct {
	Type string `json:"type"`
	Move string `json:"move_path"`
}

// UnmarshalJSON also accepts a kind that is a single word, as `codex exec` sends it.
func (k *changeKind) UnmarshalJSON(raw []byte) error {
	type plain changeKind
	if json.Unmarshal(raw, &k.Type) == nil {
		return nil
	}
	return json.Unmarshal(raw, (*plain)(k))
}
