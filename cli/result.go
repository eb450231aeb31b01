package cli

import "time"

// Result ends a turn. Err is nil on success; Text may be set in either case.
type Result struct {
	Text           string // the whole answer: equals the turn's folded text events
	AgentSessionID AgentSessionID
	Model          ModelID
	Usage          Usage             // of this turn alone
	ByModel        map[ModelID]Usage // the same for each model, if the agent reports it
	CostUSD        float64           // of this turn alone; 0 if the agent does not report it
	Duration       time.Duration
	Denials        []Denial // requests of the agent that were denied
	Aborted        bool     // the turn ended because its context was cancelled; Err is nil then
	Detached       bool     // ductor detached from the turn, which continues without it; Err is nil then
	Fallback       bool     // a live run showed nothing, so the answer comes from a one-shot run after it
	Err            *Failure // nil on success
	Told
}

// Told holds additional facts that some agents report.
type Told struct {
	Turns int  // model calls; 0 if the agent does not report them
	Fill  Fill // of the session's context after the turn
	// Unread lists messages that were steered into the turn but that its model did not read. The agent returned them
	// when the turn was cut short.
	Unread []TurnID
}

// BackgroundResult is the result of a turn that an agent started without a prompt.
type BackgroundResult struct {
	Result
	Task string // the background task whose end the agent reports in that turn, in one line; may be empty
	// Of is set if the result does not belong to such a turn. The text then belongs to the end of the answer of turn
	// Of, and arrived after that turn's Result.
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

// Sub returns the tokens that u has counted in addition to v. It is for agents that report running totals. If a total
// decreased, the agent restarted it, so the result is u itself.
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

// Total counts every token that was read or written once.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Fill is the number of tokens that a session uses of its model's context, and what the session has cost.
type Fill struct {
	Used  int64      `json:"used"`            // 0 if the agent does not report it
	Limit int64      `json:"limit,omitempty"` // 0 if the agent does not report it
	Parts []FillPart `json:"parts,omitempty"`
	// SpentUSD is what all turns of the session have cost. It is nil if the agent does not report that total.
	SpentUSD *float64 `json:"spent_usd,omitempty"`
}

// FillPart is a part of a context. Its name is the agent's own, such as "System prompt".
type FillPart struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// Percent returns how full the context is. It returns false if that is unknown.
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
