package bottest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/outbox"
	"ductor/bot/tgapi"
)

// Record contains the names and times of requests. The times are relative to the creation of the Record.
type Record struct {
	mu    sync.Mutex
	start time.Time
	calls []string
}

func NewRecord() *Record { return &Record{start: time.Now()} }

func (r *Record) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf("%s %s", time.Since(r.start).Round(10*time.Millisecond), name))
}

func (r *Record) Run(name string) func(context.Context) error {
	return r.Fail(name)
}

// Fail returns a function that records a request under the given name. Each call of the function returns the next error
// of errs, and nil after the last error.
func (r *Record) Fail(name string, errs ...error) func(context.Context) error {
	return func(context.Context) error {
		r.note(name)
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func fault(kind tgapi.FaultKind) error {
	return tgapi.NewCallError("test", tgapi.Fault{Kind: kind}, nil, nil)
}

func Limited(after time.Duration) error {
	return tgapi.NewCallError("test", tgapi.Fault{Kind: tgapi.RateLimited, RetryAfter: after}, nil, nil)
}

// NewOutbox returns an outbox with the default rate limits and without random delays.
func NewOutbox() *outbox.Outbox {
	return outbox.New(outbox.Options{Trouble: tgapi.TroubleOf, Jitter: func() float64 { return 0 }})
}

// WithOutbox runs a test with a fake clock and a new outbox. At the end, it waits until the outbox is empty, for at
// most a minute.
func WithOutbox(t *testing.T, f func(t *testing.T, o *outbox.Outbox, r *Record)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox()
		f(t, o, NewRecord())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = o.Drain(ctx) // some tests leave requests that cannot be sent
	})
}

// Anna is the private chat of a user with this name.
var Anna = outbox.Chat{ID: 1}

// AtFirst returns a value for Chat.Mishaps: the first request gets the fault f, and later requests get no fault.
func AtFirst(f Mishap) func(string) Mishap {
	first := true
	return func(string) Mishap {
		if first {
			first = false
			return f
		}
		return GoesWell
	}
}

// OnWire is an http.RoundTripper that calls the hooks of package httptrace as if Next had used a network connection.
type OnWire struct{ Next http.RoundTripper }

func (w OnWire) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := httptrace.ContextClientTrace(r.Context()); t != nil {
		t.GotConn(httptrace.GotConnInfo{})
		t.WroteRequest(httptrace.WroteRequestInfo{})
	}
	return w.Next.RoundTrip(r)
}

// InBubble runs f with a fake clock, in a synctest bubble. It passes panics of f to the caller, because package rapid
// ends failed checks with a panic.
func InBubble(t *testing.T, f func(t *testing.T)) {
	var thrown any
	synctest.Test(t, func(t *testing.T) {
		defer func() { thrown = recover() }()
		f(t)
	})
	switch {
	case thrown == nil:
	case fmt.Sprintf("%T", thrown) == "rapid.invalidData":
		panic(thrown) // panic in a separate line, because package rapid distinguishes failures by the line of the panic
	default:
		panic(thrown)
	}
}
