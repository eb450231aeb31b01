package heartbeat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// HookOptions configure Hooks. Hooks, Store, Now, NewID and Logger are required.
type HookOptions struct {
	Hooks  []Hook
	Store  HookStore
	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger
	Poke   func()    // has the scheduler look; may be nil
	Random io.Reader // of what must not be guessed, safe for concurrent use; crypto/rand when nil
	// InFlight bounds the deliveries of one hook that are recorded at a time; DefaultInFlight when 0.
	InFlight int
}

// DefaultInFlight is more than a disk keeps waiting that is well.
const DefaultInFlight = 8

// Hooks answers POST /hooks/{name}. It is an http.Handler, safe for concurrent use. How many bodies it reads at a
// time is bounded by the connections there may be.
type Hooks struct {
	opts  HookOptions
	mux   *http.ServeMux
	hooks map[string]*hookState
}

type hookState struct {
	Hook
	limit *rate.Limiter
	slots chan struct{} // of deliveries that are signed and whole: who is slow, or no caller of the hook, holds none

	mu      sync.Mutex
	recent  []string // seals that were taken, the newest last: a replay costs no write
	refused int
	warned  time.Time
}

// recentMost bounds the seals that are remembered without asking the store.
const recentMost = 256

// NewHooks checks the hooks. Jobs gives the jobs that the scheduler must know before they are called.
func NewHooks(opts HookOptions) (*Hooks, error) {
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	if opts.InFlight <= 0 {
		opts.InFlight = DefaultInFlight
	}
	if opts.Poke == nil {
		opts.Poke = func() {}
	}
	h := &Hooks{opts: opts, mux: http.NewServeMux(), hooks: map[string]*hookState{}}
	for _, hook := range opts.Hooks {
		hook = hook.filled()
		if err := hook.check(); err != nil {
			return nil, err
		}
		if h.hooks[hook.Name] != nil {
			return nil, fmt.Errorf("two webhooks are called %q", hook.Name)
		}
		every := rate.Every(time.Minute / time.Duration(hook.PerMinute))
		h.hooks[hook.Name] = &hookState{
			Hook: hook, limit: rate.NewLimiter(every, max(1, min(hook.PerMinute, 10))), slots: make(chan struct{}, opts.InFlight),
		}
	}
	h.mux.HandleFunc("POST /hooks/{name}", h.serve)
	return h, nil
}

// Jobs is the jobs of the hooks, for Scheduler.Sync.
func (h *Hooks) Jobs() []Job {
	var jobs []Job
	for _, hook := range h.opts.Hooks {
		jobs = append(jobs, hook.filled().Job)
	}
	return jobs
}

// ServeHTTP answers a delivery: 202 when it is taken or was before, 401 for a wrong signature, 404, 405, 409 for a
// replay, 413 for a body that is too long, 429 when there are too many of the hook, 503 when too many of it
// are being recorded or it is paused.
func (h *Hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Hooks) serve(w http.ResponseWriter, r *http.Request) {
	hook := h.hooks[r.PathValue("name")]
	if hook == nil {
		http.NotFound(w, r)
		return
	}
	// What can be refused by its head is not read.
	if r.ContentLength > hook.BodyMax {
		h.answer(w, http.StatusRequestEntityTooLarge)
		return
	}
	c, err := hook.claimOf(r.Header, h.opts.Now())
	if err != nil {
		h.unsigned(w, hook)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hook.BodyMax))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		h.answer(w, http.StatusRequestEntityTooLarge)
	case err != nil:
		h.answer(w, http.StatusBadRequest)
	default:
		h.take(r.Context(), w, hook, c, body)
	}
}

func (h *Hooks) take(ctx context.Context, w http.ResponseWriter, hook *hookState, c claim, body []byte) {
	seal, event, err := hook.verify(c, body)
	if err != nil {
		h.unsigned(w, hook)
		return
	}
	select {
	case hook.slots <- struct{}{}:
		defer func() { <-hook.slots }()
	default:
		h.answer(w, http.StatusServiceUnavailable)
		return
	}
	if seal != "" && hook.knows(seal) {
		h.answer(w, http.StatusConflict)
		return
	}
	now := h.opts.Now()
	if !hook.limit.AllowN(now, 1) {
		h.answer(w, http.StatusTooManyRequests)
		return
	}
	prompt, err := compose(hook.Name, hook.Job.Prompt, body, h.opts.Random)
	if err != nil {
		h.broken(w, hook, err)
		return
	}
	job := ConfigID(KindHook, hook.Name)
	run := Run{ID: handID(job, h.opts.NewID()), Job: job, Cause: CauseHook, Due: now, StandsFor: 1, Prompt: prompt,
		Attempt: 1, State: RunWaiting}
	// A caller that hangs up must not decide whether a delivery that is being recorded counts.
	taken, err := h.opts.Store.TakeHook(context.WithoutCancel(ctx), Delivery{Seal: seal, Event: event, At: now, Run: run})
	if err != nil {
		h.broken(w, hook, err)
		return
	}
	h.opts.Logger.Info("webhook was called", "hook", hook.Name, "taken", taken, "bytes", len(body))
	switch taken {
	case TakenNow:
		hook.remember(seal)
		h.opts.Poke()
		h.answer(w, http.StatusAccepted)
	case TakenBefore:
		h.answer(w, http.StatusAccepted)
	case Replayed:
		hook.remember(seal)
		h.answer(w, http.StatusConflict)
	case TakenPaused:
		h.answer(w, http.StatusServiceUnavailable)
	default:
		h.answer(w, http.StatusTooManyRequests)
	}
}

func (h *Hooks) broken(w http.ResponseWriter, hook *hookState, err error) {
	h.opts.Logger.Error("take a webhook", "hook", hook.Name, "err", err)
	h.answer(w, http.StatusInternalServerError)
}

// unsigned refuses a delivery, and warns of it once a minute at most: who floods us must not fill the log.
func (h *Hooks) unsigned(w http.ResponseWriter, hook *hookState) {
	now := h.opts.Now()
	hook.mu.Lock()
	hook.refused++
	refused, warn := hook.refused, now.Sub(hook.warned) >= time.Minute || now.Before(hook.warned)
	if warn {
		hook.refused, hook.warned = 0, now
	}
	hook.mu.Unlock()
	if warn {
		h.opts.Logger.Warn("webhook refused: the secret or signature is wrong", "hook", hook.Name, "times", refused)
	}
	h.answer(w, http.StatusUnauthorized)
}

func (h *Hooks) answer(w http.ResponseWriter, code int) {
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "60")
	}
	if code != http.StatusAccepted {
		w.Header().Set("Connection", "close") // what is left of the body is not read
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, http.StatusText(code)+"\n") // a caller that has gone misses nothing
}

func (s *hookState) knows(seal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.recent, seal)
}

func (s *hookState) remember(seal string) {
	if seal == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, seal)
	if len(s.recent) > recentMost {
		s.recent = slices.Delete(s.recent, 0, len(s.recent)-recentMost)
	}
}
