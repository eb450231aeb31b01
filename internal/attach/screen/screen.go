// Package screen computes the rows that `ductor attach` shows from messages of ductor and keys of the user, and the
// requests that these keys mean. It knows neither a terminal nor a connection.
package screen

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/internal/attach/wire"
)

// focus is where the keys of the user go.
type focus string

// The places.
const (
	onPrompt focus = ""       // the prompt
	onAsk    focus = "ask"    // the options of the approval
	onReason focus = "reason" // the reason of a denial
	onAnswer focus = "answer" // own words as an answer
	onSecret focus = "secret" // an answer that the screen does not show
)

// Pending is a request that ductor has not answered, with its conversation. The client repeats it after a reconnect.
type Pending struct {
	Conversation string
	wire.Request
	edits string // the prompt that the user edits once it is out of the queue
}

// Screen is the state of an attached terminal. Its methods must not be called at the same time.
type Screen struct {
	NewID func() string // returns an ID of a request
	Link  string        // state of the connection, for the user; empty while it is up

	all     []wire.Conversation
	known   map[string]*conversation
	at      string // the conversation that messages of ductor belong to
	wanted  string // the conversation on the screen
	pending []Pending

	focus focus
	input editor // the prompt
	words editor // a reason or an answer
	open  bool   // outputs and arguments are whole
}

// New returns a screen of the conversation with a key. An empty key means the private chat of the owner.
func New(key string, newID func() string) *Screen {
	return &Screen{NewID: newID, Link: "connecting", wanted: key, known: map[string]*conversation{}}
}

// conversation returns the conversation with a key.
func (s *Screen) conversation(key string) *conversation {
	c := s.known[key]
	if c == nil {
		c = &conversation{}
		s.known[key] = c
	}
	return c
}

// Connected returns the requests of a new connection: it opens the conversation, and repeats unanswered requests.
func (s *Screen) Connected() []wire.Request {
	requests := []wire.Request{{List: &wire.List{}}}
	opened := false
	at := s.wanted
	open := func(key string) {
		if !opened || at != key {
			requests = append(requests, wire.Request{Open: &wire.Open{Conversation: key}})
		}
		opened, at = true, key
	}
	for _, p := range s.pending {
		open(p.Conversation)
		requests = append(requests, p.Request)
	}
	open(s.wanted)
	s.Link = ""
	return requests
}

// Pending returns the number of requests that ductor has not answered.
func (s *Screen) Pending() int { return len(s.pending) }

// Apply shows a message of ductor. It returns requests for ductor.
func (s *Screen) Apply(m wire.Message) (requests []wire.Request) {
	switch {
	case m.Conversations != nil:
		s.all = m.Conversations
	case m.Activity != nil:
		for i, c := range s.all {
			if c.Key == m.Activity.Conversation {
				s.all[i].Running, s.all[i].Approvals = m.Activity.Running, m.Activity.Approvals
			}
		}
	case m.Snapshot != nil:
		s.at = m.Snapshot.Conversation
		if s.wanted == "" {
			s.wanted = s.at
			for i := range s.pending {
				s.pending[i].Conversation = cmp.Or(s.pending[i].Conversation, s.at)
			}
		}
		s.conversation(s.at).snapshot(*m.Snapshot)
	case m.Reply != nil:
		requests = s.reply(*m.Reply)
	default:
		s.conversation(s.at).apply(m)
	}
	if s.focus != onPrompt && len(s.shown().asks) == 0 {
		s.focus, s.words = onPrompt, editor{}
	}
	return requests
}

// shown returns the conversation on the screen.
func (s *Screen) shown() *conversation { return s.conversation(s.wanted) }

// ask returns the approval on the screen, the oldest open one, or nil.
func (s *Screen) ask() *ask {
	for _, k := range s.shown().asks {
		if !s.decided(k.ID) {
			return k
		}
	}
	return nil
}

// decided reports whether the user has decided an approval here, and ductor has not answered yet.
func (s *Screen) decided(id string) bool {
	return slices.ContainsFunc(s.pending, func(p Pending) bool { return p.Decide != nil && p.Decide.Approval == id })
}

// reply handles the answer to a request. The text of a failed prompt returns to the user. After a command it requests the
// state again, which the command may have changed.
func (s *Screen) reply(r wire.Reply) []wire.Request {
	i := slices.IndexFunc(s.pending, func(p Pending) bool { return p.ID() == r.ID })
	if i < 0 {
		return nil
	}
	p := s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	if r.Error == "" {
		if s.input.text() == "" {
			s.input.before = p.edits
		}
		if p.Command != nil && p.Conversation == s.wanted {
			return []wire.Request{{Open: &wire.Open{Conversation: s.wanted}}}
		}
		return nil
	}
	note := r.Error
	if p.Prompt != nil {
		if s.input.text() == "" {
			s.input.before = p.Prompt.Text
		} else {
			note += "\n" + p.Prompt.Text
		}
	}
	s.conversation(p.Conversation).note("reply "+r.ID, note, time.Now())
	return nil
}

// request remembers a request until ductor answers it.
func (s *Screen) request(r wire.Request) []wire.Request {
	s.pending = append(s.pending, Pending{Conversation: s.wanted, Request: r})
	return []wire.Request{r}
}

var command = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[A-Za-z0-9_]+(\s|$)`) })

// Submit returns the request that a text means: a command, or a prompt.
func (s *Screen) Submit(text string) []wire.Request {
	switch word, _, _ := strings.Cut(strings.TrimSpace(text), " "); {
	case word == "":
		return nil
	case word == "/abort":
		return s.request(wire.Request{Abort: &wire.Abort{ID: s.NewID()}})
	case command().MatchString(text):
		return s.request(wire.Request{Command: &wire.Command{ID: s.NewID(), Text: text}})
	}
	return s.request(wire.Request{Prompt: &wire.Prompt{ID: s.NewID(), Text: text}})
}
