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

// Record records calls with their time since the start of the test.
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

// Fail returns a Run that returns each of errs in turn, and then succeeds.
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

// NewOutbox returns an outbox with the default budgets and no jitter.
func NewOutbox() *outbox.Outbox {
	return outbox.New(outbox.Options{Trouble: tgapi.TroubleOf, Jitter: func() float64 { return 0 }})
}

// WithOutbox runs a test under a fake clock and drains the outbox at its end.
func WithOutbox(t *testing.T, f func(t *testing.T, o *outbox.Outbox, r *Record)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox()
		f(t, o, NewRecord())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = o.Drain(ctx) // ignore calls that some tests cannot make
	})
}

// Anna is the private chat of the tests.
var Anna = outbox.Chat{ID: 1}

// AtFirst returns a mishap for the first call only.
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

// OnWire reports to httptrace that the request was written, as a real connection does.
type OnWire struct{ Next http.RoundTripper }

func (w OnWire) RoundTrip(r *http.Request) (*http.Response, error) {
	if t := httptrace.ContextClientTrace(r.Context()); t != nil {
		t.GotConn(httptrace.GotConnInfo{})
		t.WroteRequest(httptrace.WroteRequestInfo{})
	}
	return w.Next.RoundTrip(r)
}

// InBubble runs f under a fake clock. It passes on the panics with which rapid ends a failed check.
func InBubble(t *testing.T, f func(t *testing.T)) {
	var thrown any
	synctest.Test(t, func(t *testing.T) {
		defer func() { thrown = recover() }()
		f(t)
	})
	switch {
	case thrown == nil:
	case fmt.Sprintf("%T", thrown) == "rapid.invalidData":
		panic(thrown) // on its own line, because rapid identifies failures by the line of the panic
	default:
		panic(thrown)
	}
}
