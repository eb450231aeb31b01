package bot_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot"
	"ductor/bot/updates"
	"ductor/internal/sim/telegram"
)

func TestWrongToken(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.opts.Token = "1:wrong"
		b, err := bot.New(context.Background(), h.opts)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Run(t.Context(), h.desk)
		if !errors.Is(err, updates.ErrToken) {
			t.Errorf("Run ended with %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(h.srv.Calls()); n > 1 {
			t.Errorf("%d calls: a refused token is not tried again", n)
		}
		if strings.Contains(h.log.String(), "1:wrong") || strings.Contains(err.Error(), "1:wrong") {
			t.Error("the token is in the log or the error")
		}
	})
}

func TestTokenRevokedWhileRunning(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		wire := h.opts.Transport
		revoked := false
		h.opts.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
			if revoked {
				r = r.Clone(r.Context())
				r.URL.Path = strings.Replace(r.URL.Path, h.srv.Token(), "1:revoked", 1)
			}
			return wire.RoundTrip(r)
		})
		b, err := bot.New(context.Background(), h.opts)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- b.Run(t.Context(), h.desk) }()
		synctest.Wait()
		revoked = true
		h.ann.Send(h.chat, "last words") // ends the hanging poll
		if err := <-done; !errors.Is(err, updates.ErrToken) {
			t.Errorf("Run ended with %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got, open := h.desk.Texts(), h.journal.Open(); len(got)+len(open) != 1 {
			t.Errorf("prompts %q, open updates %v: what was received is dealt with or kept", got, open)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnotherPoller(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.serve(t)
		synctest.Wait()
		other := h.srv.Client()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := other.Post("http://x/bot"+h.srv.Token()+"/getUpdates?timeout=50", "", nil)
				if err != nil {
					return
				}
				resp.Body.Close()
				time.Sleep(time.Second)
			}
		})
		before := len(h.srv.Calls(telegram.Methods("getUpdates"), telegram.Failed))
		time.Sleep(10 * time.Minute)
		ours := len(h.srv.Calls(telegram.Methods("getUpdates"), telegram.Failed)) - before
		if ours > 24 {
			t.Errorf("%d conflicts in ten minutes: the pollers throw each other out", ours)
		}
		h.await(t, "Another program takes messages")
		close(stop)
		time.Sleep(3 * time.Minute)
		h.ann.Send(h.chat, "still there?")
		time.Sleep(2 * time.Minute)
		wg.Wait()
		if got := h.desk.Texts(); !slices.Equal(got, []string{"still there?"}) {
			t.Errorf("prompts %q: once the other is gone, all is as before", got)
		}
		if n := strings.Count(h.chat.Transcript(), "Another program"); n != 1 {
			t.Errorf("the owner was told %d times", n)
		}
	})
}

func TestAWebhookIsRemoved(t *testing.T) {
	simulated(t, func(t *testing.T, h *botRig) {
		h.srv.SetWebhook("https://example.com/hook")
		h.ann.Send(h.chat, "waiting")
		h.serve(t)
		time.Sleep(time.Minute)
		if got := h.desk.Texts(); !slices.Equal(got, []string{"waiting"}) {
			t.Errorf("prompts %q: what waited for the webhook is not dropped", got)
		}
	})
}
