package telegram_test

import (
	"testing"
	"time"

	"ductor/internal/sim/telegram"
)

// step is one call some time after the one before, and the retry_after it gets: 0 is through.
type step struct {
	after  time.Duration
	method string
	params p
	want   int
}

func TestBucketsFillAndShut(t *testing.T) {
	say, group := p{"chat_id": 7, "text": "x"}, p{"chat_id": -1, "text": "x"}
	typing := p{"chat_id": 7, "action": "typing"}
	album := p{"chat_id": 7, "media": `[{"type":"photo"},{"type":"photo"},{"type":"photo"}]`}
	second := telegram.Rate{Every: time.Second, Burst: 3}
	for name, c := range map[string]struct {
		limits telegram.Limits
		steps  []step
	}{
		"no limits": {telegram.Limits{}, []step{{0, "sendMessage", say, 0}, {0, "sendMessage", say, 0},
			{0, "sendMessage", say, 0}}},
		"a burst, then one a second": {telegram.Limits{Chat: second}, []step{
			{0, "sendMessage", say, 0}, {0, "sendMessage", say, 0}, {0, "sendMessage", say, 0},
			{0, "sendMessage", say, 1},
			{time.Second, "sendMessage", say, 0}, {0, "sendMessage", say, 1},
			{4 * time.Second, "sendMessage", say, 0}, {0, "sendMessage", say, 0}, {0, "sendMessage", say, 0},
			{0, "sendMessage", say, 1},
		}},
		"everything counts": {telegram.Limits{Chat: second}, []step{
			{0, "sendChatAction", typing, 0}, {0, "editMessageText", say, 0}, {0, "deleteMessage", say, 0},
			{0, "sendMessage", say, 1},
			{0, "answerCallbackQuery", say, 0}, {0, "getChat", say, 0},
		}},
		"calling too early makes it longer": {telegram.Limits{Chat: second, Penalty: time.Second}, []step{
			{0, "sendMessage", say, 0}, {0, "sendMessage", say, 0}, {0, "sendMessage", say, 0},
			{0, "sendMessage", say, 1}, {0, "sendMessage", say, 2}, {0, "sendMessage", say, 4},
			{3 * time.Second, "sendMessage", say, 4}, {4 * time.Second, "sendMessage", say, 0},
		}},
		"groups have their own": {telegram.Limits{Chat: second, Group: telegram.Rate{Every: 3 * time.Second, Burst: 1}},
			[]step{
				{0, "sendMessage", group, 0}, {0, "sendMessage", group, 3}, {0, "sendMessage", say, 0},
				{3 * time.Second, "sendMessage", group, 0},
			}},
		"all chats share one": {telegram.Limits{Global: telegram.Rate{Every: time.Second / 2, Burst: 2}}, []step{
			{0, "sendMessage", say, 0}, {0, "sendMessage", group, 0}, {0, "sendMessage", say, 1},
			{time.Second, "sendMessage", say, 0},
		}},
		"an album counts for all its parts": {telegram.Limits{Chat: second}, []step{
			{0, "sendMediaGroup", album, 0}, {0, "sendMessage", say, 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, telegram.Options{Limits: c.limits}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
				srv.Group(-1, "Family")
				for i, s := range c.steps {
					time.Sleep(s.after)
					got := post(t.Context(), t, srv, s.method, s.params)
					if got.Extra.RetryAfter != s.want || (s.want > 0) != (got.Code == 429) {
						t.Errorf("step %d: %s, retry after %d, want %d", i, got.refusal(), got.Extra.RetryAfter, s.want)
					}
				}
			})
		})
	}
}

func TestWaitingAsToldIsAlwaysEnough(t *testing.T) {
	inBubble(t, telegram.Options{Limits: telegram.RealLimits()},
		func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
			refused := 0
			for i := range 40 {
				got := post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x"})
				if got.OK {
					continue
				}
				refused++
				if want := "429 Too Many Requests: retry after " + itoa(got.Extra.RetryAfter); got.refusal() != want {
					t.Errorf("call %d: %q, want %q", i, got.refusal(), want)
				}
				time.Sleep(time.Duration(got.Extra.RetryAfter) * time.Second)
				must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x"}))
			}
			if refused == 0 {
				t.Error("forty calls at once were never refused")
			}
			srv.SetLimits(telegram.Limits{})
			for range 10 {
				must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x"}))
			}
		})
}
