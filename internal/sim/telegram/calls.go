package telegram

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is a call of a method of the Bot API.
type Call struct {
	Seq         int // number of the call, beginning with 1, in the order in which calls end
	At          time.Time
	Done        time.Time
	Method      string // name in the Bot API; "file" for a download
	Params      map[string]string
	Files       map[string]int // sizes of uploaded files in bytes, by field
	Chat        ChatID
	Message     MessageID // the message that was sent or edited; zero for none
	OK          bool      // the call took effect, even if a fault prevented the client from knowing this
	Code        int       // error code; zero if OK or without a response
	Description string
	RetryAfter  int // value of retry_after, in seconds
	Fault       FaultKind
}

// CallFilter selects calls.
type CallFilter func(Call) bool

// Methods selects calls of the given methods.
func Methods(names ...string) CallFilter {
	return func(c Call) bool { return slices.Contains(names, c.Method) }
}

// InChat selects calls in a chat.
func InChat(id ChatID) CallFilter { return func(c Call) bool { return c.Chat == id } }

// Succeeded selects calls that took effect.
func Succeeded(c Call) bool { return c.OK }

// Failed selects calls that did not take effect.
func Failed(c Call) bool { return !c.OK }

// Writes selects calls that change the content of a chat: sending, editing, deleting, reactions and typing.
func Writes(c Call) bool {
	name := lower(c.Method)
	for _, prefix := range []string{"send", "edit", "delete", "copy", "forward", "pin", "unpin", "setmessage"} {
		if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, "webhook") &&
			!strings.HasSuffix(name, "commands") {
			return true
		}
	}
	return false
}

// callLog stores calls, and the functions that OnCall has registered.
type callLog struct {
	mu    sync.Mutex
	keep  int
	seq   int
	all   []Call
	hooks []func(Call)
}

func lower(name string) string { return strings.ToLower(name) }

func (c *Call) fill(q request) {
	c.Params = q.params
	for name, f := range q.files {
		if c.Files == nil {
			c.Files = map[string]int{}
		}
		c.Files[name] = len(f.data)
	}
	c.Chat, c.Message = ChatID(q.integer("chat_id")), q.messageID("message_id")
}

// finish records the result of a call and calls the functions of OnCall. The caller then sends the response.
func (s *Server) finish(c Call, result any, failure *Error) {
	c.Done = s.now()
	switch {
	case failure != nil:
		c.Code, c.Description, c.RetryAfter = failure.Code, failure.Description, failure.RetryAfter
	case result != nil:
		c.OK = true
	}
	if sent, ok := result.(*wireMessage); ok {
		c.Message = sent.ID
	}
	s.calls.add(c)
	s.mu.Lock()
	s.changed.broadcast()
	s.mu.Unlock()
}

func (l *callLog) add(c Call) {
	l.mu.Lock()
	l.seq++
	c.Seq = l.seq
	l.all = append(l.all, c)
	if l.keep > 0 && len(l.all) > l.keep {
		l.all = slices.Delete(l.all, 0, len(l.all)-l.keep)
	}
	hooks := l.hooks
	l.mu.Unlock()
	for _, hook := range hooks {
		hook(c)
	}
}

// Calls returns the calls that match all filters, in the order in which the calls ended.
func (s *Server) Calls(filters ...CallFilter) []Call {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	var list []Call
	for _, c := range s.calls.all {
		if passes(c, filters) {
			c.Params = maps.Clone(c.Params)
			list = append(list, c)
		}
	}
	return list
}

func passes(c Call, filters []CallFilter) bool {
	for _, f := range filters {
		if !f(c) {
			return false
		}
	}
	return true
}

// OnCall registers a function that the server calls when the result of a call is known, before the client gets the
// response. The function runs in the goroutine of the call. It must not block, and must not change the maps of the
// Call.
func (s *Server) OnCall(hook func(Call)) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.hooks = append(slices.Clone(s.calls.hooks), hook)
}

// AwaitCalls waits until at least n calls match all filters, and returns all calls that match.
func (s *Server) AwaitCalls(ctx context.Context, n int, filters ...CallFilter) ([]Call, error) {
	var found []Call
	err := s.await(ctx, "calls", func() bool {
		found = s.Calls(filters...)
		return len(found) >= n
	})
	return found, err
}
