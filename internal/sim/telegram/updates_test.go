package telegram_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/internal/sim/telegram"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inBubble runs a test with a server that is reached without a network, so time is fake.
func inBubble(t *testing.T, opts telegram.Options, test func(*testing.T, *telegram.Server, *telegram.Chat)) {
	synctest.Test(t, func(t *testing.T) {
		srv := telegram.New(opts)
		defer srv.Close()
		test(t, srv, srv.Private(7, "Ada"))
	})
}

// ids returns the numbers of the updates in an answer, relative to the first a server gives.
func (r reply) ids(t *testing.T) []int64 {
	t.Helper()
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(r.Result, &list); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	out := []int64{}
	for _, u := range list {
		out = append(out, u.ID)
	}
	return out
}

func TestALongPollWaitsForTheFirstUpdate(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		began := time.Now()
		go func() {
			time.Sleep(7 * time.Second)
			chat.Person().Send(chat, "hi")
		}()
		got := post(t.Context(), t, srv, "getUpdates", p{"timeout": 50})
		if len(got.ids(t)) != 1 || time.Since(began) != 7*time.Second {
			t.Errorf("got %s after %v", got.Result, time.Since(began))
		}
	})
}

func TestALongPollEndsEmptyAfterAtMostFiftySeconds(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		for timeout, want := range map[int]time.Duration{0: 0, 20: 20 * time.Second, 500: 50 * time.Second} {
			began := time.Now()
			got := post(t.Context(), t, srv, "getUpdates", p{"timeout": timeout})
			if string(got.Result) != "[]" || time.Since(began) != want {
				t.Errorf("timeout %d: %s after %v, want [] after %v", timeout, got.Result, time.Since(began), want)
			}
		}
	})
}

func TestUpdatesComeAgainUntilAcknowledged(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		for _, text := range []string{"one", "two", "three", "four"} {
			chat.Person().Send(chat, text)
		}
		all := post(t.Context(), t, srv, "getUpdates", nil).ids(t)
		if len(all) != 4 || all[3] != all[0]+3 {
			t.Fatalf("numbers %v do not rise by one", all)
		}
		steps := []struct {
			params p
			want   []int64
		}{
			{nil, all},
			{p{"limit": 2}, all[:2]},
			{p{"offset": all[1]}, all[1:]},
			{nil, all[1:]},
			{p{"offset": -2}, all[2:]},
			{nil, all[2:]},
			{p{"offset": all[3] + 1}, []int64{}},
		}
		for _, s := range steps {
			got := post(t.Context(), t, srv, "getUpdates", s.params).ids(t)
			if !equal(got, s.want) {
				t.Errorf("%v got %v, want %v", s.params, got, s.want)
			}
		}
		if err := srv.AwaitAcknowledged(t.Context()); err != nil || srv.PendingUpdates() != 0 {
			t.Errorf("%d pending, %v", srv.PendingUpdates(), err)
		}
	})
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestTheEarlierOfTwoPollersIsTerminated(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		first := make(chan reply)
		go func() { first <- post(t.Context(), t, srv, "getUpdates", p{"timeout": 30}) }()
		if err := srv.AwaitPoll(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := make(chan reply)
		go func() { second <- post(t.Context(), t, srv, "getUpdates", p{"timeout": 30}) }()
		want := "409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
		if got := (<-first).refusal(); got != want {
			t.Errorf("the first got %s", got)
		}
		chat.Person().Send(chat, "hi")
		if got := <-second; len(got.ids(t)) != 1 {
			t.Errorf("the second got %s", got.body)
		}
	})
}

func TestAWebhookStopsPolling(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		waiting := make(chan reply)
		go func() { waiting <- post(t.Context(), t, srv, "getUpdates", p{"timeout": 30}) }()
		if err := srv.AwaitPoll(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv.SetWebhook("https://example.com/")
		if got := (<-waiting).refusal(); got != "409 Conflict: terminated by setWebhook request" {
			t.Errorf("the waiting poll got %s", got)
		}
		want := "409 Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
		if got := post(t.Context(), t, srv, "getUpdates", nil).refusal(); got != want {
			t.Errorf("a poll got %s", got)
		}
		if info := post(t.Context(), t, srv, "getWebhookInfo", nil); !strings.Contains(string(info.Result),
			"https://example.com/") {
			t.Errorf("info is %s", info.Result)
		}
		must(t, post(t.Context(), t, srv, "deleteWebhook", nil))
		must(t, post(t.Context(), t, srv, "getUpdates", nil))
	})
}

func TestAllowedUpdatesAreRememberedAndApplyToWhatComes(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		ada := chat.Person()
		m := ada.Send(chat, "kept, it was there before")
		ada.React(m, "👍") // not among the default kinds
		ask := func(allowed string) int {
			return len(post(t.Context(), t, srv, "getUpdates", p{"allowed_updates": allowed}).ids(t))
		}
		if got := ask(`["message_reaction"]`); got != 1 {
			t.Errorf("%d updates before anything new", got)
		}
		ada.Send(chat, "not asked for")
		ada.React(m, "🔥")
		if got := ask(""); got != 2 {
			t.Errorf("%d updates, want the old message and the reaction", got)
		}
		ask("[]") // back to the default kinds
		ada.Send(chat, "asked for again")
		if got := ask(""); got != 3 {
			t.Errorf("%d updates after going back to the default", got)
		}
	})
}

func TestUpdatesDieOfAge(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x", "reply_markup": keys("A", "a")}))
		m, _ := chat.View().Last()
		chat.Person().Send(chat, "hi")
		if _, err := chat.Person().Tap(m, "A"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			wait time.Duration
			left int
		}{{149 * time.Second, 2}, {time.Second, 1}, {24*time.Hour - 151*time.Second, 1}, {time.Second, 0}} {
			time.Sleep(step.wait)
			if got := srv.PendingUpdates(); got != step.left {
				t.Errorf("%d updates %v later, want %d", got, step.wait, step.left)
			}
		}
	})
}

func TestRawUpdatesReachTheClientAsTheyAre(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		srv.InjectRaw(func(id telegram.UpdateID) string {
			return `{"update_id":` + strconv.FormatInt(int64(id), 10) + `,"message":"not an object"}`
		})
		srv.InjectUpdate("poll", `{"id":"1"}`)
		chat.Person().Send(chat, "after")
		got := post(t.Context(), t, srv, "getUpdates", nil)
		if len(got.ids(t)) != 3 || !strings.Contains(got.body, `"message":"not an object"`) ||
			!strings.Contains(got.body, `"poll":{"id":"1"}`) {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestAPollThatRepeatsItselfIsSlowedDown(t *testing.T) {
	inBubble(t, telegram.Options{ThrottlePolls: true}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		began := time.Now()
		post(t.Context(), t, srv, "getUpdates", nil)
		post(t.Context(), t, srv, "getUpdates", nil)
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("the second empty poll came back after %v", waited)
		}
		chat.Person().Send(chat, "one")
		chat.Person().Send(chat, "two")
		time.Sleep(time.Minute)
		first, second := post(t.Context(), t, srv, "getUpdates", nil), post(t.Context(), t, srv, "getUpdates", nil)
		if len(first.ids(t)) != 2 || len(second.ids(t)) != 1 {
			t.Errorf("got %v, then %v", first.ids(t), second.ids(t))
		}
	})
}

func TestAClientThatGoesAwayLosesNothing(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		gone, hangUp := context.WithTimeout(t.Context(), 5*time.Second)
		defer hangUp()
		if got := post(gone, t, srv, "getUpdates", p{"timeout": 30}); got.broken == nil {
			t.Errorf("a poll that was hung up got %s", got.body)
		}
		chat.Person().Send(chat, "hi")
		if got := post(t.Context(), t, srv, "getUpdates", nil); len(got.ids(t)) != 1 {
			t.Errorf("the next poll got %s", got.body)
		}
	})
}
