package cli

import "time"

// Result is the last event of a turn. Err is nil on success. Text may be set in either case.
type Result struct {
	Text           string // the whole answer, equal to the combined text events of the turn
	AgentSessionID AgentSessionID
	Model          ModelID
	Usage          Usage             // of this turn alone
	ByModel        map[ModelID]Usage // Usage by model, if the agent reports it
	CostUSD        float64           // of this turn alone; 0 if the agent does not report it
	Duration       time.Duration
	Denials        []Denial // requests of the agent that were denied
	Aborted        bool     // the turn ended because its context was cancelled; Err is nil then
	Detached       bool     // ductor detached from the turn, which continues without it; Err is nil then
	Fallback       bool     // the live run produced no output, so ductor repeated the turn one-shot
	Err            *Failure // nil on success
	Told
}

// Told contains additional facts about the turn that some agents report.
type Told struct {
	Turns int  // model calls; 0 if the agent does not report them
	Fill  Fill // how full the session's context is after the turn
	// Unread lists messages that ductor steered into the turn, but that the model did not read. The agent returned them
	// when the turn was cut short, or its process ended before.
	Unread []TurnID
}

// BackgroundResult is the result of a turn that the agent started by itself, without a prompt.
type BackgroundResult struct {
	Result
	Task string // the background task that ended before that turn, in one line; may be empty
	// Of is set if the result belongs to an earlier turn instead. Text is then the end of that turn's answer, which
	// arrived after its Result.
	Of TurnID
}

// Usage counts tokens.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning: u.Reasoning + v.Reasoning,
	}
}

// Sub returns the tokens of u that v does not include. It is for agents that report running totals. If a total
// decreased, the agent has started to count again, so Sub returns u.
func (u Usage) Sub(v Usage) Usage {
	if u.Input < v.Input || u.Output < v.Output || u.CacheRead < v.CacheRead ||
		u.CacheWrite < v.CacheWrite || u.Reasoning < v.Reasoning {
		return u
	}
	return Usage{
		Input: u.Input - v.Input, Output: u.Output - v.Output,
		CacheRead: u.CacheRead - v.CacheRead, CacheWrite: u.CacheWrite - v.CacheWrite,
		Reasoning: u.Reasoning - v.Reasoning,
	}
}

// Total returns the number of all tokens that were read or written.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Fill is the number of tokens that a session uses of its model's context, and what the session has cost.
type Fill struct {
	Used  int64      `json:"used"`            // 0 if the agent does not report it
	Limit int64      `json:"limit,omitempty"` // 0 if the agent does not report it
	Parts []FillPart `json:"parts,omitempty"`
	// SpentUSD is what all turns of the session have cost. It is nil if the agent does not report that total.
	SpentUSD *float64 `json:"spent_usd,omitempty"`
}

// FillPart is a part of a context. Name is in the agent's own words, such as "System prompt".
type FillPart struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// Percent returns how full the context is, in percent. It returns false if that is unknown.
func (f Fill) Percent() (int, bool) {
	if f.Used <= 0 || f.Limit <= 0 {
		return 0, false
	}
	return int(f.Used * 100 / f.Limit), true
}

// Denial is a tool call that was not allowed.
type Denial struct {
	Tool   string `json:"tool"`             // the agent's name for the tool
	Title  string `json:"title,omitempty"`  // one line for users: the command, the path
	Reason string `json:"reason,omitempty"` // one line; may be empty
}
