package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/heartbeat"
	"ductor/heartbeat/webhook"
	"ductor/internal/store"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// friday is the time of the tests.
var friday = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var here = orchestrator.ConversationID{Chat: 7, Topic: 3}

func TestMain(m *testing.M) { testprogram.Main(m) }

const secret = "correct horse battery staple"

// rig is a handler on a real store, with a clock of its own.
type rig struct {
	*webhook.Handler
	db  *store.DB
	log *bytes.Buffer
	mu  sync.Mutex
	at  time.Time
	ids int
}

func (s *rig) now() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.at }

func (s *rig) advance(d time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.at = s.at.Add(d) }

func (s *rig) newID() string { s.mu.Lock(); defer s.mu.Unlock(); s.ids++; return fmt.Sprint(s.ids) }

func newRig(t *testing.T, change ...func(*webhook.Hook)) *rig {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &rig{db: db, at: friday, log: &bytes.Buffer{}}
	var hooks []webhook.Hook
	for _, auth := range []webhook.Auth{webhook.Bearer, webhook.GitHub, webhook.Stripe} {
		h := webhook.Hook{Name: string(auth), Caller: webhook.Caller{Auth: auth, Secret: secret, PerMinute: 600},
			Job: orchestrator.Job{Conversation: here, Person: 9, Prompt: "Look at {{payload}}"}}
		for _, f := range change {
			f(&h)
		}
		hooks = append(hooks, h)
	}
	s.Handler, err = webhook.New(webhook.Options{Hooks: hooks, Store: db, Now: s.now, NewID: s.newID,
		Logger: slog.New(slog.NewTextHandler(s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	sched := heartbeat.New(heartbeat.Options{Store: db, Now: s.now, NewID: s.newID,
		Logger: slog.New(slog.DiscardHandler)})
	if err := sched.Sync(t.Context(), s.Jobs()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *rig) runs(t *testing.T, hook string) []orchestrator.JobRun {
	t.Helper()
	runs, err := s.db.Runs(context.Background(), orchestrator.ConfiguredJob(orchestrator.JobHook, hook), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func mac(key, text string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

func stripe(key string, at time.Time, body string) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), mac(key, fmt.Sprintf("%d.%s", at.Unix(), body)))
}

// deliver delivers a body and returns the response's code.
func (s *rig) deliver(path, body string, header ...string) int {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

// flood makes the delivery of a number: of four, one is signed and three are not, and some are ten megabytes long. It
// returns 0 if the server closed the connection without a response.
func flood(client *http.Client, base string, i int) int {
	body := fmt.Sprint("delivery ", i)
	signature := "sha256=" + mac(secret, body)
	var reader io.Reader = strings.NewReader(body)
	if i%4 != 0 {
		signature = "sha256=" + mac("guess", body)
	}
	if i%20 == 3 {
		reader = io.LimitReader(zeros{}, 10<<20)
	}
	r, err := http.NewRequest(http.MethodPost, base+"/hooks/github", reader)
	if err != nil {
		return -1
	}
	if i%40 == 3 {
		r.ContentLength = 10 << 20
	}
	r.Header.Set("X-Hub-Signature-256", signature)
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// noStore is a Store that must not be called.
type noStore struct{ t *testing.T }

func (n noStore) RecordDelivery(context.Context, webhook.Delivery) (webhook.Result, error) {
	n.t.Error("a delivery was taken")
	return "", errors.New("taken")
}

func (noStore) PruneDeliveries(context.Context, time.Time) (int64, error) { return 0, nil }
