package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ductor/orchestrator"
)

// Options configures a Handler. Hooks, Store, Now, NewID and Logger are required.
type Options struct {
	Hooks  []Hook
	Store  Store
	Now    func() time.Time
	NewID  func() string
	Logger *slog.Logger
	Poke   func() // makes the scheduler look for new runs; may be nil
}

// inFlight is the maximum number of deliveries of a hook that the store may be storing at the same time. This maximum
// is reached only if the disk has problems.
const inFlight = 8

// Handler serves POST /hooks/{name}. Safe for concurrent use.
type Handler struct {
	opts  Options
	mux   *http.ServeMux
	hooks map[string]*hookState
}

type hookState struct {
	Hook
	prompt []part // template of the prompt
	limit  *rate.Limiter
	// slots contains an element for each delivery that is being stored; see inFlight. The handler reads and
	// authenticates a delivery before it takes a slot, so slow or unauthenticated callers occupy no slots.
	slots    chan struct{}
	stored   signatures
	unsigned rejections
}

// signatures contains the signatures of the last stored deliveries, the newest at the end. With these signatures, the
// handler recognizes most repeated deliveries without asking the store.
type signatures struct {
	mu     sync.Mutex
	recent []string
}

// maxRecent limits the number of signatures in memory.
const maxRecent = 256

func (s *signatures) contain(signature string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.recent, signature)
}

// add adds the signature of a delivery. It ignores an empty one.
func (s *signatures) add(signature string) {
	if signature == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, signature)
	if len(s.recent) > maxRecent {
		s.recent = slices.Delete(s.recent, 0, len(s.recent)-maxRecent)
	}
}

// rejections counts the rejected deliveries since the last warning.
type rejections struct {
	mu     sync.Mutex
	count  int
	warned time.Time
}

// add counts a rejection, and returns the number of rejections since the last warning. If warn is true, the caller
// should log a warning with this number. This happens at most once a minute, so that a flood of calls does not fill the
// log.
func (r *rejections) add(now time.Time) (count int, warn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	count, warn = r.count, now.Sub(r.warned) >= time.Minute || now.Before(r.warned)
	if warn {
		r.count, r.warned = 0, now
	}
	return count, warn
}

// New returns a Handler. It returns an error if a hook is invalid. The caller must pass Jobs to
// heartbeat.Scheduler.Sync before the first request.
func New(opts Options) (*Handler, error) {
	if opts.Poke == nil {
		opts.Poke = func() {}
	}
	h := &Handler{opts: opts, mux: http.NewServeMux(), hooks: map[string]*hookState{}}
	for _, hook := range opts.Hooks {
		hook = hook.withDefaults()
		if err := hook.check(); err != nil {
			return nil, err
		}
		prompt, err := parseTemplate(hook.Job.Prompt)
		if err != nil {
			return nil, fmt.Errorf("webhook %s: %w", hook.Name, err)
		}
		if h.hooks[hook.Name] != nil {
			return nil, fmt.Errorf("two webhooks are called %q", hook.Name)
		}
		every := rate.Every(time.Minute / time.Duration(hook.PerMinute))
		h.hooks[hook.Name] = &hookState{
			Hook: hook, prompt: prompt, limit: rate.NewLimiter(every, max(1, min(hook.PerMinute, 10))),
			slots: make(chan struct{}, inFlight),
		}
	}
	h.mux.HandleFunc("POST /hooks/{name}", h.serve)
	return h, nil
}

// Jobs returns the jobs that the hooks start, for heartbeat.Scheduler.Sync.
func (h *Handler) Jobs() []orchestrator.Job {
	var jobs []orchestrator.Job
	for _, hook := range h.opts.Hooks {
		jobs = append(jobs, hook.withDefaults().Job)
	}
	return jobs
}

// ServeHTTP handles a delivery. It responds with one of these codes:
//   - 202: the delivery was stored, or its event was stored before
//   - 401: wrong signature or secret
//   - 404, 405: unknown hook, or a method other than POST
//   - 409: the same signed delivery was received before
//   - 413: the body is too long
//   - 429: too many deliveries, or too many waiting runs of the hook
//   - 503: too many deliveries are being stored, or the hook is paused
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	hook := h.hooks[r.PathValue("name")]
	if hook == nil {
		http.NotFound(w, r)
		return
	}
	// If the headers are sufficient to reject a delivery, do not read the body.
	bodyMax := int64(hook.BodyMaxKB) << 10
	if r.ContentLength > bodyMax {
		h.respond(w, http.StatusRequestEntityTooLarge)
		return
	}
	c, err := hook.claimOf(r.Header, h.opts.Now())
	if err != nil {
		h.rejectUnsigned(w, hook)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		h.respond(w, http.StatusRequestEntityTooLarge)
	case err != nil:
		h.respond(w, http.StatusBadRequest)
	default:
		h.recordDelivery(r.Context(), w, hook, c, body)
	}
}

func (h *Handler) recordDelivery(ctx context.Context, w http.ResponseWriter, hook *hookState, c claim, body []byte) {
	signature, event, err := hook.verify(c, body)
	if err != nil {
		h.rejectUnsigned(w, hook)
		return
	}
	select {
	case hook.slots <- struct{}{}:
		defer func() { <-hook.slots }()
	default:
		h.respond(w, http.StatusServiceUnavailable)
		return
	}
	if signature != "" && hook.stored.contain(signature) {
		h.respond(w, http.StatusConflict)
		return
	}
	now := h.opts.Now()
	if !hook.limit.AllowN(now, 1) {
		h.respond(w, http.StatusTooManyRequests)
		return
	}
	job := orchestrator.ConfiguredJob(orchestrator.JobHook, hook.Name)
	run := orchestrator.JobRun{ID: orchestrator.KeyedRun(job, h.opts.NewID()), Job: job,
		Cause: orchestrator.CauseHook, Due: now,
		StandsFor: 1, Prompt: compose(hook.Name, hook.prompt, body), Attempt: 1, State: orchestrator.RunWaiting}
	// Store the delivery even if the caller disconnects.
	result, err := h.opts.Store.RecordDelivery(context.WithoutCancel(ctx),
		Delivery{Signature: signature, Event: event, At: now, Run: run})
	if err != nil {
		h.opts.Logger.Error("record a delivery", "hook", hook.Name, "err", err)
		h.respond(w, http.StatusInternalServerError)
		return
	}
	h.opts.Logger.Info("webhook was called", "hook", hook.Name, "result", result, "bytes", len(body))
	switch result {
	case Recorded:
		hook.stored.add(signature)
		h.opts.Poke()
		h.respond(w, http.StatusAccepted)
	case Repeated:
		h.respond(w, http.StatusAccepted)
	case Replayed:
		hook.stored.add(signature)
		h.respond(w, http.StatusConflict)
	case Paused:
		h.respond(w, http.StatusServiceUnavailable)
	default:
		h.respond(w, http.StatusTooManyRequests)
	}
}

func (h *Handler) rejectUnsigned(w http.ResponseWriter, hook *hookState) {
	if count, warn := hook.unsigned.add(h.opts.Now()); warn {
		h.opts.Logger.Warn("rejected a webhook call: wrong secret or signature", "hook", hook.Name, "times", count)
	}
	h.respond(w, http.StatusUnauthorized)
}

func (h *Handler) respond(w http.ResponseWriter, code int) {
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "60")
	}
	if code != http.StatusAccepted {
		w.Header().Set("Connection", "close") // the rest of the body will not be read
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, http.StatusText(code)+"\n") // the caller may have disconnected
}
