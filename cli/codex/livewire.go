package codex

import "encoding/json"

// notice is what the notifications of a turn carry; which fields count depends on the method.
type notice struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	ItemID   string `json:"itemId"`
	Delta    string `json:"delta"`
	Message  string `json:"message"` // warning

	Item *liveItem `json:"item"`
	Turn *turnInfo `json:"turn"`

	Error     *turnError `json:"error"`
	WillRetry bool       `json:"willRetry"`

	Explanation string     `json:"explanation"` // turn/plan/updated
	Plan        []planStep `json:"plan"`

	TokenUsage struct {
		Total liveUsage `json:"total"`
		Last  liveUsage `json:"last"`
	} `json:"tokenUsage"`

	RateLimits struct {
		Primary   *rateWindow `json:"primary"`
		Secondary *rateWindow `json:"secondary"`
	} `json:"rateLimits"`

	ToModel string       `json:"toModel"` // model/rerouted
	Changes []liveChange `json:"changes"` // item/fileChange/patchUpdated
}

// turnInfo is a turn as turn/completed tells of it.
type turnInfo struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Error  *turnError `json:"error"`
}

// The ways a turn ends.
const (
	turnCompleted   = "completed"
	turnInterrupted = "interrupted"
	turnFailed      = "failed"
)

// turnError is why a turn, or one request to the model, failed. Info is a word, or an object of one word.
type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

type planStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

type rateWindow struct {
	Used     float64 `json:"usedPercent"`
	ResetsAt int64   `json:"resetsAt"` // seconds since 1970
}

type liveUsage struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	CacheNew  int64 `json:"cacheWriteInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

// liveItem is one thing a turn is made of; which fields count depends on Type.
type liveItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	Text  string `json:"text"`  // agentMessage, plan
	Phase string `json:"phase"` // agentMessage: commentary, final_answer

	Summary []string        `json:"summary"` // reasoning
	Content json.RawMessage `json:"content"` // reasoning: strings; userMessage: objects

	Command    string `json:"command"` // commandExecution
	Output     string `json:"aggregatedOutput"`
	ExitCode   *int   `json:"exitCode"`
	DurationMs *int64 `json:"durationMs"`

	Changes []liveChange `json:"changes"` // fileChange

	Server       string          `json:"server"`    // mcpToolCall
	Namespace    string          `json:"namespace"` // dynamicToolCall
	Tool         string          `json:"tool"`      // mcpToolCall, dynamicToolCall, collabAgentToolCall
	Arguments    json.RawMessage `json:"arguments"`
	Result       json.RawMessage `json:"result"`
	ContentItems json.RawMessage `json:"contentItems"`
	Error        *apiError       `json:"error"`

	Prompt string `json:"prompt"` // collabAgentToolCall
	Query  string `json:"query"`  // webSearch
	Path   string `json:"path"`   // imageView
}

type liveChange struct {
	Path string `json:"path"`
	Kind struct {
		Type string `json:"type"`
		Move string `json:"move_path"`
	} `json:"kind"`
	Diff string `json:"diff"`
}
