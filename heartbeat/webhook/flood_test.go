package webhook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/heartbeat/webhook"
)

// TestAFloodIsRefused sends a thousand concurrent deliveries, signed, unsigned and huge, through a real server. Few
// run, no huge one is read, and memory stays constant.
func TestAFloodIsRefused(t *testing.T) {
	s := newRig(t, func(h *webhook.Hook) { h.PerMinute = 5 })
	ctx, cancel := context.WithCancel(t.Context())
	l, err := webhook.Listen(ctx, webhook.Settings{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- webhook.Serve(ctx, l, s) }()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 40}, Timeout: time.Minute}
	codes := map[int]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for worker := range 40 {
		group.Go(func() {
			for i := range 25 {
				code := flood(client, "http://"+l.Addr().String(), worker*25+i)
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	client.CloseIdleConnections()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if codes[202] != 5 || len(s.runs(t, "github")) != 5 {
		t.Errorf("%d were taken and %d recorded, want the 5 of a minute; answers: %v", codes[202],
			len(s.runs(t, "github")), codes)
	}
	if codes[401] == 0 || codes[413]+codes[0] == 0 || codes[429] == 0 {
		t.Errorf("answers: %v", codes)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if lines := strings.Count(s.log.String(), "rejected a webhook call"); lines != 1 {
		t.Errorf("the log warns %d times", lines)
	}
}

// TestAHookHasItsRate: excess deliveries get 429, and the next minute starts anew. Replays do not count.
func TestAHookHasItsRate(t *testing.T) {
	s := newRig(t, func(h *webhook.Hook) { h.PerMinute = 2 })
	call := func(body string, want int) {
		t.Helper()
		if got := s.deliver("/hooks/github", body, "X-Hub-Signature-256", "sha256="+mac(secret, body)); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
	call("one", 202)
	call("one", 409)
	call("two", 202)
	call("three", 429)
	s.advance(time.Minute)
	call("three", 202)
}

func TestWebhooksListenOnThisMachineOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.org:0", "192.0.2.1:0"} {
		l, err := webhook.Listen(t.Context(), webhook.Settings{Listen: addr})
		if !errors.Is(err, webhook.ErrNotLoopback) {
			t.Errorf("%s: %v", addr, err)
			if err == nil {
				l.Close()
			}
		}
	}
	l, err := webhook.Listen(t.Context(), webhook.Settings{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		for err == nil { // no slot is free for the last one
			_, err = l.Accept()
		}
		accepted <- err
	}()
	for range webhook.MostConns + 1 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener gives %v", err)
	}
}
