package health

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

// fakeStore is a store whose writes end as the test wants.
type fakeStore struct {
	mu    sync.Mutex
	err   error
	hangs bool
	disk  orchestrator.DiskState
}

func (s *fakeStore) TryWrite(ctx context.Context) error {
	s.mu.Lock()
	err, hangs := s.err, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *fakeStore) Disk() (orchestrator.DiskState, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk, context.Background()
}

func (s *fakeStore) setState(err error, hangs bool, disk orchestrator.DiskState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs, s.disk = err, hangs, disk
}

// systemd records the notifications.
type systemd struct {
	mu   sync.Mutex
	told []string
}

func (s *systemd) notify(state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, state)
	return nil
}

// take removes the notifications since the last call and counts those with a state.
func (s *systemd) take(state string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.told {
		if strings.Contains(t, state) {
			n++
		}
	}
	s.told = nil
	return n
}

var errAway = errors.New("away")

// For each trouble: whether a restart may help, so that the watchdog is not fed, and the answer of /healthz.
func TestNotificationsToSystemd(t *testing.T) {
	for name, c := range map[string]struct {
		poll           error
		wait           time.Duration // that the poller announces
		again          bool          // whether it polls again
		store          error
		hangs          bool
		disk           orchestrator.DiskState
		alive          bool
		polling, wrote Status
	}{
		"all works":                  {again: true, disk: orchestrator.DiskWorks, alive: true, polling: OK, wrote: OK},
		"Telegram is away":           {poll: errAway, again: true, disk: orchestrator.DiskWorks, alive: true, polling: Failing, wrote: OK},
		"Telegram wants a long wait": {poll: errAway, wait: time.Hour, disk: orchestrator.DiskWorks, alive: true, polling: Failing, wrote: OK},
		"the poller hangs":           {disk: orchestrator.DiskWorks, polling: Stuck, wrote: OK},
		"the disk is full":           {again: true, store: errAway, disk: orchestrator.DiskFull, alive: true, polling: OK, wrote: Full},
		"writes fail":                {again: true, store: errAway, disk: orchestrator.DiskWorks, polling: OK, wrote: Failing},
		"a write hangs":              {again: true, hangs: true, disk: orchestrator.DiskWorks, polling: OK, wrote: Stuck},
		"the disk failed":            {again: true, store: errAway, disk: orchestrator.DiskFailed, polling: OK, wrote: Failing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := &fakeStore{disk: orchestrator.DiskWorks}, &systemd{}
				h := New(Options{Store: s, Poll: time.Minute, Now: time.Now})
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				go h.Run(ctx, Manager{Notify: m.notify, Watchdog: time.Minute, Log: slog.New(slog.DiscardHandler)})
				time.Sleep(5 * time.Minute)
				if m.take("READY=1") > 0 {
					t.Fatal("it is ready before Telegram answered")
				}
				h.Polled(nil, 0)
				synctest.Wait()
				if m.take("READY=1") != 1 {
					t.Fatal("it is not ready when Telegram answered")
				}
				s.setState(c.store, c.hangs, c.disk)
				h.Polled(c.poll, c.wait)
				for range 10 {
					time.Sleep(30 * time.Second)
					if c.again {
						h.Polled(c.poll, c.wait)
					}
				}
				m.take("")
				time.Sleep(50 * time.Second)
				if alive := m.take("WATCHDOG=1") > 1; alive != c.alive {
					t.Errorf("signs of life: %v", alive)
				}
				if got := h.State(); got.Polling != c.polling || got.Store != c.wrote {
					t.Errorf("polling %s, store %s", got.Polling, got.Store)
				}
			})
		})
	}
}

// A start without Telegram gets more time; a start with a failing store does not.
func TestAStartWithoutTelegramGetsMoreTime(t *testing.T) {
	for _, broken := range []error{nil, errAway} {
		synctest.Test(t, func(t *testing.T) {
			s, m := &fakeStore{disk: orchestrator.DiskWorks, err: broken}, &systemd{}
			h := New(Options{Store: s, Poll: time.Minute, Now: time.Now})
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go h.Run(ctx, Manager{Notify: m.notify, Log: slog.New(slog.DiscardHandler)})
			time.Sleep(10*time.Minute - time.Second)
			if n := m.take("EXTEND_TIMEOUT_USEC=120000000"); (n == 20) != (broken == nil) {
				t.Errorf("with a store that says %v it asked %d times", broken, n)
			}
		})
	}
}

// The answer for monitors contains the parts and nothing else.
func TestAnswerForMonitors(t *testing.T) {
	at := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	s := &fakeStore{disk: orchestrator.DiskWorks}
	h := New(Options{Store: s, Poll: time.Minute, Now: func() time.Time { return at }})
	ask := func(code int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		if got := strings.TrimSpace(w.Body.String()); w.Code != code || got != want || !json.Valid([]byte(got)) {
			t.Errorf("%d %s, want\n%d %s", w.Code, got, code, want)
		}
	}
	ask(503, `{"status":"unhealthy","parts":{"polling":{"status":"starting"},"store":{"status":"starting"}}}`)
	h.Polled(nil, 0)
	h.tryStore(t.Context())
	ask(200, `{"status":"ok","parts":{"polling":{"status":"ok","last":"2026-11-24T18:00:00Z"},"store":{"status":"ok","last":"2026-11-24T18:00:00Z"}}}`)
	s.setState(errors.New("a secret path"), false, orchestrator.DiskWorks)
	at = at.Add(time.Hour)
	h.tryStore(t.Context())
	ask(503, `{"status":"unhealthy","parts":{"polling":{"status":"stuck","last":"2026-11-24T18:00:00Z"},"store":{"status":"failing","last":"2026-11-24T19:00:00Z"}}}`)
}

// ManagerOf uses systemd's environment variables.
func TestTheManagerIsInTheEnvironment(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Setenv("NOTIFY_SOCKET", "")
	if m := ManagerOf(log); m.Notify != nil {
		t.Error("a manager without a socket")
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/notify")
	t.Setenv("WATCHDOG_USEC", "9000000")
	t.Setenv("WATCHDOG_PID", "")
	if m := ManagerOf(log); m.Notify == nil || m.Watchdog != 9*time.Second || m.interval() != 3*time.Second {
		t.Errorf("%+v", m)
	}
}
