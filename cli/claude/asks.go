package claude

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
)

// request is one thing that Claude asked people for.
type request struct {
	id        cli.ApprovalID // the request's own, so that it is the same after an adoption
	wire      string         // the id in the protocol
	call      cli.ToolID
	input     json.RawMessage
	questions []string // of a question: their texts
	event     cli.Event
	told      bool
}

// answer is the line that answers it.
func (a request) answer(d cli.Decision) []byte {
	switch {
	case a.questions != nil && (d.Allow || len(d.Answers) > 0):
		return allowLine(a.wire, withAnswers(a.input, a.questions, d.Answers))
	case d.Allow:
		return allowLine(a.wire, a.input)
	case d.Reason == "":
		return denyLine(a.wire, "The person said no, without giving a reason.")
	}
	return denyLine(a.wire, d.Reason)
}

// withAnswers is a question's input as AskUserQuestion returns it: with the answers by the question's text,
// several joined by commas.
func withAnswers(input json.RawMessage, questions []string, chosen [][]string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(input, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	answers := map[string]string{}
	for i, q := range questions {
		if i < len(chosen) {
			answers[q] = strings.Join(chosen[i], ", ")
		}
	}
	all["answers"] = jsonLine(answers)
	return jsonLine(all)
}

// asks are the things that Claude waits for people with. Safe for concurrent use.
type asks struct {
	mu       sync.Mutex
	open     []request
	answered []cli.ApprovalID
	over     bool
}

// newAsks knows what the previous process of ductor answered.
func newAsks(answered []cli.ApprovalID) *asks { return &asks{answered: slices.Clone(answered)} }

// add takes a; false if it was answered already, or is there.
func (s *asks) add(a request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := slices.ContainsFunc(s.open, func(o request) bool { return o.id == a.id })
	if known || s.over || slices.Contains(s.answered, a.id) {
		return false
	}
	s.open = append(s.open, a)
	return true
}

// take removes what is called id, to answer it.
func (s *asks) take(id cli.ApprovalID) (a request, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.open, func(a request) bool { return a.id == id })
	if i < 0 || s.over {
		return request{}, false
	}
	a = s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	s.answered = append(s.answered, id)
	return a, true
}

// told are all that were answered.
func (s *asks) told() []cli.ApprovalID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answered)
}

// drop removes the requests for which gone is true and returns them.
func (s *asks) drop(gone func(request) bool) (dropped []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(a request) bool {
		if gone(a) {
			dropped = append(dropped, a)
			return true
		}
		return false
	})
	return dropped
}

// tell returns what people were not told of yet.
func (s *asks) tell() (news []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.open {
		if !s.open[i].told {
			s.open[i].told = true
			news = append(news, s.open[i])
		}
	}
	return news
}

// close ends it: nothing is taken any more. It returns what was open.
func (s *asks) close() []request {
	left := s.drop(func(request) bool { return true })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return left
}

// waiting is what turn.Loop asks for.
func (s *asks) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}
