package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// What Codex asks people for.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFiles       = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askQuestions   = "item/tool/requestUserInput"
	askServer      = "mcpServer/elicitation/request" // an MCP server asks, or Codex whether to use one
)

// askable says whether ductor can answer a request of this method.
func askable(method string) bool {
	return slices.Contains([]string{askCommand, askFiles, askPermissions, askQuestions, askServer}, method)
}

// askParams is what a request tells; which fields count depends on the method.
type askParams struct {
	Item    string `json:"itemId"`
	Reason  string `json:"reason"`
	Command string `json:"command"`
	Dir     string `json:"cwd"`

	Permissions json.RawMessage `json:"permissions"`
	Questions   []askQuestion   `json:"questions"`

	Server  string          `json:"serverName"`
	Message string          `json:"message"`
	Network json.RawMessage `json:"networkApprovalContext"`
	Schema  struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"requestedSchema"`
	Meta struct {
		Kind       string                     `json:"codex_approval_kind"`
		Tool       string                     `json:"tool_name"`
		Parameters map[string]json.RawMessage `json:"tool_params"`
		Display    []struct {
			Name string `json:"name"`
		} `json:"tool_params_display"`
	} `json:"_meta"`
}

type askQuestion struct {
	ID       string `json:"id"`
	Header   string `json:"header"`
	Question string `json:"question"`
	Other    bool   `json:"isOther"`
	Secret   bool   `json:"isSecret"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// maxPending is how many requests may wait in a turn, and how many threads that others started are remembered.
const maxPending = 1 << 10

// inquiry is a request that waits for a person.
type inquiry struct {
	id     cli.ApprovalID // the request's own, so that it is the same after an adoption
	m      rpc.Message
	params askParams
	told   bool
}

func newInquiry(m rpc.Message) *inquiry {
	a := &inquiry{id: cli.ApprovalID(strings.Trim(string(m.ID), `"`)), m: m}
	_ = json.Unmarshal(m.Params, &a.params) // what is missing is not shown
	return a
}

// answer is the result that a decision becomes.
func (a *inquiry) answer(d cli.Decision) any {
	switch a.m.Method {
	case askPermissions:
		if d.Allow && len(a.params.Permissions) > 0 {
			return map[string]any{"permissions": a.params.Permissions, "scope": "turn"}
		}
		return map[string]any{"permissions": struct{}{}, "scope": "turn"}
	case askQuestions:
		return a.answers(d)
	case askServer:
		if d.Allow {
			return map[string]any{"action": "accept", "content": struct{}{}}
		}
		return map[string]any{"action": "decline", "content": nil}
	}
	if d.Allow {
		return map[string]string{"decision": "accept"}
	}
	return map[string]string{"decision": "decline"}
}

// answers are a person's to each question. Whoever gives none is said not to want to.
func (a *inquiry) answers(d cli.Decision) any {
	answers := map[string]any{}
	for i, q := range a.params.Questions {
		chosen := []string{or(d.Reason, "The person gives no answer. Decide yourself.")}
		if i < len(d.Answers) && len(d.Answers[i]) > 0 {
			chosen = d.Answers[i]
		}
		answers[q.ID] = map[string]any{"answers": chosen}
	}
	return map[string]any{"answers": answers}
}

// declining is the answer to a request that no user is asked about.
func declining(m rpc.Message) any {
	return newInquiry(m).answer(cli.Decision{Reason: "No user can be asked now. Decide yourself."})
}

// asks are what a turn waits for people with. Safe for concurrent use.
type asks struct {
	mu    sync.Mutex
	open  []*inquiry
	over  bool
	heard time.Time // when a person decided last
}

// add takes a, unless it is there already.
func (s *asks) add(a *inquiry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.open) >= maxPending || slices.ContainsFunc(s.open, func(o *inquiry) bool { return o.id == a.id }) {
		return false
	}
	s.open = append(s.open, a)
	return true
}

// remove takes out what is called id; nil if it is not there.
func (s *asks) remove(id cli.ApprovalID) *inquiry {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.open, func(a *inquiry) bool { return a.id == id })
	if i < 0 {
		return nil
	}
	a := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	return a
}

// take takes out, to answer it, what people were told of.
func (s *asks) take(id cli.ApprovalID) *inquiry {
	s.mu.Lock()
	known := slices.ContainsFunc(s.open, func(a *inquiry) bool { return a.id == id && a.told })
	if known {
		s.heard = time.Now()
	}
	s.mu.Unlock()
	if !known {
		return nil
	}
	return s.remove(id)
}

// tell returns what people were not told of yet, and takes note that they are now.
func (s *asks) tell() (untold []*inquiry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.open {
		if !a.told {
			a.told = true
			untold = append(untold, a)
		}
	}
	return untold
}

// waited is what turn.Loop asks for.
func (s *asks) waited(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return turn.WaitedUntil(now, len(s.open), s.heard)
}

// close takes everything out for good.
func (s *asks) close() []*inquiry {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.open
	s.open, s.over = nil, true
	return left
}
