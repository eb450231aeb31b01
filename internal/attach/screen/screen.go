// Package screen computes the screen of `ductor attach`. Its inputs are messages from ductor and keys that the user
// pressed. Its outputs are rows of text and requests to ductor. It accesses neither the terminal nor the connection.
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

// focus is the part of the screen that receives the keys.
type focus string

const (
	onPrompt focus = ""       // the input for prompts
	onAsk    focus = "ask"    // the options of the approval
	onReason focus = "reason" // the input for the reason of a denial
	onAnswer focus = "answer" // the input for an answer that is not among the options
	onSecret focus = "secret" // the input for a secret answer, whose text stays hidden
)

// Pending is a request that ductor has not answered yet. The client repeats it after a reconnect.
type Pending struct {
	Conversation string
	wire.Request
	edits string // in a Cancel request: the text of the canceled prompt, which the user wants to edit
}

// Screen is the state of an attached terminal. It is not safe for concurrent use.
type Screen struct {
	NewID func() string // returns the id for a new request
	Link  string        // state of the connection, for the user; empty while connected

	all     []wire.Conversation
	known   map[string]*conversation
	at      string // key of the conversation that ductor has opened
	wanted  string // key of the conversation that the user wants to see
	pending []Pending

	focus focus
	input editor // the typed prompt
	words editor // the typed reason or answer
	open  bool   // show complete outputs and arguments
}

// New returns a screen for the conversation with the given key. An empty key means the private chat of the owner.
func New(key string, newID func() string) *Screen {
	return &Screen{NewID: newID, Link: "connecting", wanted: key, known: map[string]*conversation{}}
}

// conversation returns the state of the conversation with a key. It creates an empty state if necessary.
func (s *Screen) conversation(key string) *conversation {
	c := s.known[key]
	if c == nil {
		c = &conversation{}
		s.known[key] = c
	}
	return c
}

// Connected returns the requests to send on a new connection. They open the conversation and repeat unanswered
// requests.
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

// Apply applies a message from ductor. It returns requests to send.
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

func (s *Screen) shown() *conversation { return s.conversation(s.wanted) }

// ask returns the oldest open approval of the shown conversation, or nil.
func (s *Screen) ask() *ask {
	for _, k := range s.shown().asks {
		if !s.decided(k.ID) {
			return k
		}
	}
	return nil
}

// decided reports whether the user has decided the approval in this terminal, but ductor has not replied to the
// decision yet.
func (s *Screen) decided(id string) bool {
	return slices.ContainsFunc(s.pending, func(p Pending) bool { return p.Decide != nil && p.Decide.Approval == id })
}

// reply handles ductor's reply to a request. If a prompt failed, its text returns to the input. A command may have
// changed the conversation. So after a command, reply opens the conversation again.
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

// request records a request as pending until ductor answers it.
func (s *Screen) request(r wire.Request) []wire.Request {
	s.pending = append(s.pending, Pending{Conversation: s.wanted, Request: r})
	return []wire.Request{r}
}

var command = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[A-Za-z0-9_]+(\s|$)`) })

// Submit returns the request for a text that the user typed, which is a command or a prompt.
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
