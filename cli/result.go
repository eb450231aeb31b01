package cli

import "time"

// Result is the last event of a turn. Err is nil on success. Text may be set even if Err is not nil.
type Result struct {
	Text           string // the complete answer; equal to the combined text events of the turn
	AgentSessionID AgentSessionID
	Model          ModelID
	Consumed       Consumption // what this turn alone consumed
	Duration       time.Duration
	Denials        []Denial // requests of the agent that were denied
	Aborted        bool     // a user aborted the turn; Err is nil then
	Detached       bool     // ductor detached from the turn, which continues without it; Err is nil then
	Fallback       bool     // the live process produced no output, so ductor repeated the turn in OneShot mode
	Err            *Failure // nil on success
	Fill           Fill     // how full the session's context is after the turn; zero if the agent does not report it
	Steered        Steered
}

// Steered contains the messages that ductor added to a turn (see Steerer), as far as their fate is known.
type Steered struct {
	// Unread lists messages that the model did not read. The agent returned these messages when it ended the turn
	// early, or its process ended before the model read them.
	Unread []TurnID
	// Read lists messages that the model has read. After a restart of ductor, it also contains messages that the
	// previous process added, if the agent's output names them.
	Read []TurnID
}

// Add adds the messages of an earlier attempt of the same turn.
func (s *Steered) Add(before Steered) {
	s.Unread, s.Read = append(before.Unread, s.Unread...), append(before.Read, s.Read...)
}

// BackgroundResult is the result of a turn that the agent started without a prompt.
type BackgroundResult struct {
	Text     string
	Model    ModelID
	Consumed Consumption
	Task     string // the background task whose end caused the turn, in one line; may be empty
	// Of is set if the agent continued the answer of an earlier turn after that turn's Result. Of is the earlier turn,
	// and Text is the rest of its answer.
	Of TurnID
}

// Consumption is what a turn consumed. The zero value means that the agent reports nothing.
type Consumption struct {
	Usage   Usage             // all tokens
	ByModel map[ModelID]Usage // Usage by model; nil if the agent does not report it
	CostUSD float64           // 0 if the agent does not report it
	Turns   int               // calls of the model; 0 if the agent does not report them
}

// Add adds what another part of the same turn consumed.
func (c *Consumption) Add(other Consumption) {
	c.Usage = c.Usage.Add(other.Usage)
	for id, u := range other.ByModel {
		c.AddModel(id, u)
	}
	c.CostUSD += other.CostUSD
	c.Turns += other.Turns
}

// AddModel adds tokens to ByModel. It does not change Usage, because many agents report the sum separately.
func (c *Consumption) AddModel(id ModelID, u Usage) {
	if c.ByModel == nil {
		c.ByModel = map[ModelID]Usage{}
	}
	c.ByModel[id] = c.ByModel[id].Add(u)
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

// Sub returns u minus v, for agents that report running totals. If a total decreased, the agent has started to count
// again from zero, so Sub returns u.
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

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Fill describes how full a session's context is. It also contains the cost of the session.
type Fill struct {
	Used  int64      `json:"used"`            // tokens in the context; 0 if the agent does not report them
	Limit int64      `json:"limit,omitempty"` // size of the context in tokens; 0 if the agent does not report it
	Parts []FillPart `json:"parts,omitempty"`
	// SpentUSD is the cost of all turns of the session. It is nil if the agent does not report it.
	SpentUSD *float64 `json:"spent_usd,omitempty"`
}

// FillPart is a part of a context. Name is the agent's own description, such as "System prompt".
type FillPart struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// Percent returns how full the context is, in percent. It returns false if this is unknown.
func (f Fill) Percent() (int, bool) {
	if f.Used <= 0 || f.Limit <= 0 {
		return 0, false
	}
	return int(f.Used * 100 / f.Limit), true
}

// Denial is a tool call that was denied.
type Denial struct {
	Tool   string `json:"tool"`             // the agent's own name for the tool
	Title  string `json:"title,omitempty"`  // one line for users: the command, the path
	Reason string `json:"reason,omitempty"` // one line; may be empty
}
