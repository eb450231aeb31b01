package cli

import "time"

// Result ends a turn. Err says whether it went well; Text may be set either way.
type Result struct {
	Text           string // the whole answer: what folding the turn's text events gives
	AgentSessionID AgentSessionID
	Model          ModelID
	Usage          Usage             // of this turn alone
	ByModel        map[ModelID]Usage // the same, per model, where the agent says
	CostUSD        float64           // of this turn alone; 0 where the agent does not say
	Duration       time.Duration
	Denials        []Denial // what the agent asked for and did not get
	Aborted        bool     // ended because its context was cancelled; Err is nil then
	Detached       bool     // ductor detached from the turn, which goes on without it; Err is nil then
	Fallback       bool     // the answer of the one-shot run after a live one that showed nothing
	Err            *Failure // nil when the turn went well
	Told
}

// Told is what some agents tell besides.
type Told struct {
	Turns int  // model calls; 0 where the agent does not say
	Fill  Fill // of the session's context, after the turn
	// Unread are the messages that were sent into the turn, and that the agent gave back when the turn was cut short: its model
	// did not read them.
	Unread []TurnID
}

// BackgroundResult is the result of a turn that an agent began without a prompt.
type BackgroundResult struct {
	Result
	Task string // in the background, whose end the agent tells in that turn, in one line; may be empty
	// Of is set where there was no such turn: the text is the rest of the answer of this one, which came after its Result.
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

// Sub returns what u counted since v: for agents that report running totals.
// A total that went down was started anew, so u itself is what was counted since.
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

// Total is every token that was read or written once.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Fill is how much of what its model can read a session takes, in tokens.
type Fill struct {
	Used  int64      `json:"used"`            // 0 where the agent does not say
	Limit int64      `json:"limit,omitempty"` // 0 where the agent does not say
	Parts []FillPart `json:"parts,omitempty"`
}

// FillPart is a part of what fills a context, such as "System prompt", by the agent's own name of it.
type FillPart struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// Percent is how full it is; false where that is not known.
func (f Fill) Percent() (int, bool) {
	if f.Used <= 0 || f.Limit <= 0 {
		return 0, false
	}
	return int(f.Used * 100 / f.Limit), true
}

// Denial is a tool call that was not allowed.
type Denial struct {
	Tool   string `json:"tool"`             // the agent's name of the tool
	Title  string `json:"title,omitempty"`  // one line for people: the command, the path
	Reason string `json:"reason,omitempty"` // one line; may be empty
}
