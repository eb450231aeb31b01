package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Settings configures the collector that receives the traces and metrics of turns.
type Settings struct {
	URL     string `toml:"url" check:"url" example:"http://localhost:4318"` // collector; if empty, nothing is sent
	KeyFrom string `toml:"key_from"`                                        // environment variable with the key
	Content bool   `toml:"content"`                                         // also send the texts of turns
}

// Options configures a Tracer. All fields except URL and Key are required.
type Options struct {
	Settings
	Key     string // sent as "Authorization: Bearer KEY"
	Version string
	// Hide removes secrets from a text. dir is the working directory of the agent that wrote the text.
	Hide func(dir, text string) string
	Now  func() time.Time
	Log  *slog.Logger
}

// Tracer records turns, and sends them every few seconds. It drops data that exceeds its limits or cannot be sent. Safe
// for concurrent use.
type Tracer struct {
	opts   Options
	client *http.Client
	began  time.Time
	full   chan struct{} // receives a value when a batch is complete; capacity 1

	mu      sync.Mutex
	spans   []span
	dropped int
	series  map[string]*counted
	changed bool
}

// Limits of the data in memory and of sending it.
const (
	sendEvery = 5 * time.Second
	sendWait  = 10 * time.Second
	mostSpans = 2048
	batch     = 256
)

// New returns a Tracer. The caller must run Run.
func New(o Options) *Tracer {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // ignore proxies of the environment
	return &Tracer{
		opts: o, began: o.Now(), full: make(chan struct{}, 1), series: map[string]*counted{},
		client: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// put stores the spans of an ended turn, to be sent later. It never blocks.
func (t *Tracer) put(spans []span) {
	if t.opts.URL == "" {
		return
	}
	t.mu.Lock()
	room := max(mostSpans-len(t.spans), 0)
	t.dropped += max(len(spans)-room, 0)
	t.spans = append(t.spans, spans[max(len(spans)-room, 0):]...) // keep the last span, which describes the turn itself
	much := len(t.spans) >= batch
	t.changed = true
	t.mu.Unlock()
	if much {
		select {
		case t.full <- struct{}{}:
		default:
		}
	}
}

// Run sends data until ctx ends, and then sends the remaining data.
func (t *Tracer) Run(ctx context.Context) {
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	defer t.client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			t.flush(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		case <-t.full:
		}
		t.flush(ctx)
	}
}

func (t *Tracer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	t.mu.Lock()
	spans, dropped, changed := t.spans, t.dropped, t.changed
	t.spans, t.dropped, t.changed = nil, 0, false
	var metrics []metric
	if changed {
		metrics = t.metricsLocked(t.opts.Now())
	}
	t.mu.Unlock()
	if dropped > 0 {
		t.opts.Log.Warn("dropped spans: the collector is too slow", "spans", dropped)
	}
	var of attributes
	of.text("service.name", "ductor")
	of.text("service.version", t.opts.Version)
	by := scope{Name: "ductor", Version: t.opts.Version}
	var err error
	if len(spans) > 0 {
		err = t.send(ctx, "/v1/traces", spansRequest{[]resourceSpans{{resource{of}, []scopeSpans{{by, spans}}}}})
	}
	if len(metrics) > 0 {
		err = errors.Join(err, t.send(ctx, "/v1/metrics",
			metricsRequest{[]resourceMetrics{{resource{of}, []scopeMetrics{{by, metrics}}}}}))
	}
	if err != nil {
		t.opts.Log.Warn("dropped traces that could not be sent", "spans", len(spans), "err", err)
	}
}

func (t *Tracer) send(ctx context.Context, path string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(t.opts.URL, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call the collector: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if t.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.opts.Key)
	}
	answer, err := t.client.Do(req)
	if err != nil {
		return fmt.Errorf("call the collector: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // lets the connection be reused
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	return nil
}
