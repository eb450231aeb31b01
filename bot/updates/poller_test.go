package updates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// botAPI answers getUpdates from a script, one answer per poll. After the script polls hang.
type botAPI struct {
	answers []func(*http.Request) (*http.Response, error)
	asked   []pollParams
	times   []time.Time
	other   []string // calls of other methods
}

type pollParams struct {
	Offset  int64    `json:"offset"`
	Timeout int      `json:"timeout"`
	Limit   int      `json:"limit"`
	Allowed []string `json:"allowed_updates"`
}

func (a *botAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/getUpdates") {
		a.other = append(a.other, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		return answer(200, `{"ok":true,"result":true}`)(r)
	}
	var p pollParams
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		return nil, err
	}
	a.asked, a.times = append(a.asked, p), append(a.times, time.Now())
	if len(a.asked) > len(a.answers) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return a.answers[len(a.asked)-1](r)
}

func answer(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func updatesOf(ids ...int) func(*http.Request) (*http.Response, error) {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf(`{"update_id":%d}`, id))
	}
	return answer(200, `{"ok":true,"result":[`+strings.Join(list, ",")+`]}`)
}

func saysNo(code int, description, params string) func(*http.Request) (*http.Response, error) {
	return answer(code, fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q,"parameters":{%s}}`, code, description, params))
}

func broken(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }

// pollRig is a poller on a scripted API.
type pollRig struct {
	*Poller
	api       *botAPI
	journal   *bottest.Inbox
	got       []int64
	logs      *bottest.Log
	conflicts int
	reported  []reported
}

// reported is the result of a poll as the poller reports it.
type reported struct {
	failed bool
	wait   time.Duration
}

func newPollRig(answers ...func(*http.Request) (*http.Response, error)) *pollRig {
	rig := &pollRig{api: &botAPI{answers: answers}, journal: bottest.NewInbox(), logs: &bottest.Log{}}
	rig.Poller = &Poller{
		api:     tgapi.NewAPI("http://t", "1:secret-token", rig.api),
		journal: rig.journal, timeout: 50 * time.Second, backoff: backoff{jitter: func(d time.Duration) time.Duration { return d }},
		strip:      func(u orchestrator.Update) orchestrator.Update { return u },
		guard:      &diskGuard{journal: rig.journal, now: time.Now, log: slog.New(rig.logs)},
		unfinished: &unfinished{},
		log:        slog.New(rig.logs), report: reports{func(context.Context) { rig.conflicts++ }, func(err error, wait time.Duration) { rig.reported = append(rig.reported, reported{err != nil, wait}) }},
		dispatch: func(_ context.Context, updates []orchestrator.Update) {
			for _, u := range updates {
				rig.got = append(rig.got, u.ID)
			}
		},
	}
	return rig
}

// play polls for some fake time.
func (r *pollRig) play(t *testing.T, d time.Duration) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.TakeUp(ctx); err != nil {
		return err
	}
	return r.Run(ctx)
}

func (r *pollRig) offsets() []int64 {
	var out []int64
	for _, p := range r.api.asked {
		out = append(out, p.Offset)
	}
	return out
}

func (r *pollRig) gaps() []time.Duration {
	var out []time.Duration
	for i := 1; i < len(r.api.times); i++ {
		out = append(out, r.api.times[i].Sub(r.api.times[i-1]))
	}
	return out
}

func polling(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestPollTakesUpUnfinishedUpdates(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(1, 2, 3), updatesOf())
		_ = r.play(t, time.Second)
		r.unfinished.add([]int64{3})
		r.unfinished.add([]int64{1})
		for range 2 {
			if err := r.takeUpUnfinished(t.Context()); err != nil || !slices.Equal(r.got, []int64{1, 2, 3, 1, 3}) {
				t.Errorf("dispatched %v, %v", r.got, err)
			}
		}
	})
}

func TestPollAcknowledgesWhatIsJournaled(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(10, 11), updatesOf(12), updatesOf())
		if err := r.play(t, time.Minute); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.got, []int64{10, 11, 12}) || !slices.Equal(r.offsets(), []int64{0, 12, 13, 0}) {
			t.Errorf("got %v with offsets %v", r.got, r.offsets())
		}
		p := r.api.asked[1]
		if p.Timeout != 50 || p.Limit != 100 || !slices.Equal(p.Allowed, []string{"message", "edited_message", "callback_query", "stopped_message_generation"}) {
			t.Errorf("asked %+v", p)
		}
	})
}

func TestPollDoesNotAcknowledgeWhatIsNotJournaled(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(10), updatesOf(10), updatesOf(10))
		r.journal.Fail(errors.New("disk full"))
		_ = r.play(t, 10*time.Second)
		if len(r.got) > 0 || slices.ContainsFunc(r.offsets(), func(o int64) bool { return o > 0 }) {
			t.Errorf("got %v with offsets %v", r.got, r.offsets())
		}
		if gaps := r.gaps(); !slices.Equal(gaps, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			t.Errorf("gaps %v", gaps)
		}
	})
}

func TestPollDoesNotAcknowledgeWhatIsNotOnTheDisk(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(10), updatesOf(10), updatesOf(10, 11), updatesOf())
		r.journal.FailFlushes(2)
		_ = r.play(t, time.Minute)
		if !slices.Equal(r.got, []int64{10, 11}) || !slices.Equal(r.offsets(), []int64{0, 0, 0, 12, 0}) {
			t.Errorf("got %v with offsets %v", r.got, r.offsets())
		}
	})
}

// refillingDisk has room for the check, and none for an update.
type refillingDisk struct{ *bottest.Inbox }

func (d refillingDisk) AppendUpdates(context.Context, []orchestrator.Update) ([]orchestrator.Update, error) {
	d.SetDisk(orchestrator.DiskFull)
	return nil, orchestrator.ErrDiskFull
}

func (d refillingDisk) RetryDisk(context.Context) error {
	d.SetDisk(orchestrator.DiskWorks)
	return nil
}

// A disk that becomes full again with each update does not make the poller repeat its requests without a pause.
func TestPollPausesWhileADiskRefills(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(slices.Repeat([]func(*http.Request) (*http.Response, error){updatesOf(10)}, 1000)...)
		r.Poller.journal, r.guard.journal = refillingDisk{r.journal}, refillingDisk{r.journal}
		r.guard.concerns = func(orchestrator.Update) (concern, bool) { return concern{}, false }
		_ = r.play(t, 2*time.Minute)
		if n := len(r.api.asked); n < 20 || n > 30 {
			t.Errorf("%d polls in two minutes", n)
		}
	})
}

func TestPollTakesUpTheJournalFirst(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(5, 6, 7, 8))
		// 5 was handled and not acknowledged; 6 and 7 were only stored.
		for id := int64(5); id <= 7; id++ {
			_, _ = r.journal.AppendUpdates(t.Context(), []orchestrator.Update{{ID: id, Raw: []byte("{}")}})
		}
		r.journal.Handle([]int64{5})
		_ = r.play(t, time.Minute)
		if !slices.Equal(r.got, []int64{6, 7, 8}) {
			t.Errorf("dispatched %v, want each open one once", r.got)
		}
		if want := []int64{0, 9}; !slices.Equal(r.offsets()[:2], want) {
			t.Errorf("offsets %v, want %v", r.offsets(), want)
		}
	})
}

func TestPollTakesUpManyPages(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig()
		var want []int64
		for id := int64(1); id <= 3*pendingPage+7; id++ {
			_, _ = r.journal.AppendUpdates(t.Context(), []orchestrator.Update{{ID: id, Raw: []byte("{}")}})
			want = append(want, id)
		}
		_ = r.play(t, time.Second)
		if !slices.Equal(r.got, want) {
			t.Errorf("%d dispatched, want %d in order", len(r.got), len(want))
		}
	})
}

func TestPollSurvivesIdsThatBeginAnew(t *testing.T) {
	// After a week without messages Telegram may restart with lower ids. An offset above them would skip them.
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(900), updatesOf(), updatesOf(20), updatesOf(21))
		_, _ = r.journal.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 1000, Raw: []byte("{}")}})
		r.journal.Handle([]int64{1000})
		_ = r.play(t, time.Minute)
		if !slices.Equal(r.got, []int64{900, 20, 21}) || !slices.Equal(r.offsets(), []int64{0, 901, 0, 21, 22}) {
			t.Errorf("got %v with offsets %v", r.got, r.offsets())
		}
	})
}

func TestPollTroubles(t *testing.T) {
	s := time.Second
	tests := []struct {
		name    string
		answers []func(*http.Request) (*http.Response, error)
		gaps    []time.Duration
		err     error
		log     string
	}{
		{"refused token", []func(*http.Request) (*http.Response, error){saysNo(401, "Unauthorized", "")}, nil, ErrToken, ""},
		{"malformed token", []func(*http.Request) (*http.Response, error){saysNo(404, "Not Found", "")}, nil, ErrToken, ""},
		{"network", []func(*http.Request) (*http.Response, error){broken, broken, broken}, []time.Duration{s, 2 * s, 4 * s}, nil, "connection reset"},
		{"bad gateway", []func(*http.Request) (*http.Response, error){answer(502, "<html>"), updatesOf()}, []time.Duration{s, 0}, nil, "502 Bad Gateway"},
		{"garbage", []func(*http.Request) (*http.Response, error){answer(200, "\x00"), updatesOf()}, []time.Duration{s, 0}, nil, "not JSON"},
		{"another shape", []func(*http.Request) (*http.Response, error){answer(200, `{"ok":true,"result":{}}`), updatesOf()}, []time.Duration{s, 0}, nil, "not what the API promises"},
		{"rate limit", []func(*http.Request) (*http.Response, error){saysNo(429, "Too Many Requests: retry after 17", `"retry_after":17`)}, []time.Duration{17 * s}, nil, "less often"},
		{"conflict", []func(*http.Request) (*http.Response, error){saysNo(409, "Conflict: terminated by other getUpdates request", "")}, []time.Duration{61 * s}, nil, "same bot token"},
		{"webhook", []func(*http.Request) (*http.Response, error){saysNo(409, "Conflict: can't use getUpdates method while webhook is active", "")}, []time.Duration{s}, nil, "webhook"},
		{"no ids", []func(*http.Request) (*http.Response, error){answer(200, `{"ok":true,"result":[{"x":1},7]}`)}, []time.Duration{s}, nil, "without an id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			polling(t, func(t *testing.T) {
				r := newPollRig(tt.answers...)
				err := r.play(t, 2*time.Minute)
				if !errors.Is(err, tt.err) || tt.err == nil && err != nil {
					t.Errorf("ended with %v, want %v", err, tt.err)
				}
				// A hanging poll is cancelled some time after it should have ended. That is no gap.
				if gaps := r.gaps(); len(gaps) < len(tt.gaps) || !slices.Equal(gaps[:len(tt.gaps)], tt.gaps) {
					t.Errorf("gaps %v, want %v", gaps, tt.gaps)
				}
				log := strings.Join(r.logs.Lines(), "\n")
				if !strings.Contains(log, tt.log) || strings.Contains(log, "secret-token") {
					t.Errorf("log %s", log)
				}
			})
		})
	}
}

// Telegram, if reachable, answers the first poll, and the first one after a failure, at once. Each is reported.
func TestTheEndOfEachPollIsReported(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf(1), broken, broken, saysNo(429, "Too Many Requests", `"retry_after":300`), updatesOf(), updatesOf())
		_ = r.play(t, 10*time.Minute)
		var timeouts []int
		for _, p := range r.api.asked[:7] {
			timeouts = append(timeouts, p.Timeout)
		}
		if !slices.Equal(timeouts, []int{0, 50, 0, 0, 0, 50, 50}) {
			t.Errorf("polls waited %v seconds", timeouts)
		}
		want := []reported{{}, {true, time.Second}, {true, 2 * time.Second}, {true, 5 * time.Minute}, {}, {}}
		if got := r.reported[:6]; !slices.Equal(got, want) {
			t.Errorf("reported %v, want %v", got, want)
		}
	})
}

// A user whose network is back gets an answer soon, and long trouble does not fill the log.
func TestPollBackoffIsBounded(t *testing.T) {
	polling(t, func(t *testing.T) {
		script := slices.Repeat([]func(*http.Request) (*http.Response, error){broken}, 40)
		r := newPollRig(script...)
		var log strings.Builder
		r.log = slog.New(slog.NewTextHandler(&log, nil))
		_ = r.play(t, 9*time.Minute) // 39 failures
		if most := slices.Max(r.gaps()); most != 15*time.Second {
			t.Errorf("the longest wait is %s", most)
		}
		if lines := strings.Count(log.String(), "polling failed"); lines < 8 || lines > 12 {
			t.Errorf("the log has %d lines:\n%s", lines, log.String())
		}
	})
}

func TestConflictIsToldOncePerTrouble(t *testing.T) {
	conflict := saysNo(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", "")
	polling(t, func(t *testing.T) {
		r := newPollRig(conflict, conflict, conflict, conflict, updatesOf(), conflict, conflict)
		_ = r.play(t, time.Hour)
		if r.conflicts != 2 {
			t.Errorf("told %d times, want once for each of two troubles", r.conflicts)
		}
	})
	polling(t, func(t *testing.T) {
		r := newPollRig(conflict, updatesOf())
		_ = r.play(t, time.Hour)
		if r.conflicts != 0 {
			t.Error("one conflict may be the last poll of a ductor that was just replaced")
		}
	})
}

func TestWebhookIsRemovedWithItsBacklogKept(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(saysNo(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook", ""), updatesOf(3))
		_ = r.play(t, time.Minute)
		if !slices.Equal(r.api.other, []string{"deleteWebhook"}) || !slices.Equal(r.got, []int64{3}) {
			t.Errorf("calls %q, updates %v", r.api.other, r.got)
		}
	})
}

func TestAHungPollIsGivenUp(t *testing.T) {
	polling(t, func(t *testing.T) {
		r := newPollRig(updatesOf())
		_ = r.play(t, 10*time.Minute)
		if gaps := r.gaps(); len(gaps) < 5 || gaps[1] != r.timeout+pollGrace+backoffBase {
			t.Errorf("gaps %v", gaps)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
