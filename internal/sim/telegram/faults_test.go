package telegram_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot"

	"ductor/internal/sim/telegram"
)

func TestFaultsStrikeAsTheyAreNamed(t *testing.T) {
	for kind, want := range map[telegram.FaultKind]struct {
		status int    // of the answer; 0 is a broken connection
		body   string // part of it
		done   bool   // the message is there
	}{
		telegram.NoFault:         {200, `"ok":true`, true},
		telegram.DropBefore:      {0, "", false},
		telegram.DropAfter:       {0, "", true},
		telegram.BadGateway:      {502, "<h1>502 Bad Gateway</h1>", false},
		telegram.BadGatewayAfter: {502, "<h1>502 Bad Gateway</h1>", true},
		telegram.ServerError:     {500, "<h1>500 Internal Server Error</h1>", false},
		telegram.TooMany:         {429, `"retry_after":9`, false},
		telegram.BadJSON:         {200, `{"ok":true,"result":{"mess`, true},
	} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
				fault := srv.Inject(telegram.Fault{Method: "sendMessage", Kind: kind, RetryAfter: 9})
				got := post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "x"})
				if got.status != want.status || !strings.Contains(got.body, want.body) {
					t.Errorf("got %d %s (%v)", got.status, got.body, got.broken)
				}
				if there := len(chat.Messages()) == 1; there != want.done || fault.Hits() != 1 {
					t.Errorf("the message is there: %v, want %v; %d hits", there, want.done, fault.Hits())
				}
				must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "again"}))
				calls := srv.Calls(telegram.Methods("sendMessage"))
				if len(calls) != 2 || calls[0].Fault != kind || !calls[1].OK || calls[1].Fault != telegram.NoFault {
					t.Errorf("recorded %+v", calls)
				}
			})
		})
	}
}

func TestFaultsPickTheirCalls(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		second := srv.Inject(telegram.Fault{
			Method: "sendmessage", Skip: 1, Times: 2, Kind: telegram.TooMany,
			When: func(c telegram.Call) bool { return strings.Contains(c.Params["text"], "bad") },
		})
		var got []int
		for _, text := range []string{"good", "bad 1", "bad 2", "good", "bad 3", "bad 4"} {
			got = append(got, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": text}).status)
		}
		want := []int{200, 200, 429, 200, 429, 200}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		always := srv.Inject(telegram.Fault{Times: telegram.Always, Kind: telegram.BadGateway})
		for range 3 {
			if got := post(t.Context(), t, srv, "getMe", nil).status; got != 502 {
				t.Errorf("getMe got %d", got)
			}
		}
		always.Remove()
		must(t, post(t.Context(), t, srv, "getMe", nil))
		if second.Hits() != 2 || always.Hits() != 3 {
			t.Errorf("hits %d and %d", second.Hits(), always.Hits())
		}
	})
}

func TestDelaysAndHangs(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		srv.Inject(telegram.Fault{Delay: 3 * time.Second})
		began := time.Now()
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "slow"}))
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("a call with a delay took %v", waited)
		}
		held := srv.Inject(telegram.Fault{Delay: time.Hour})
		time.AfterFunc(time.Minute, held.Remove)
		began = time.Now()
		must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "held up"}))
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("a call whose delay was ended took %v", waited)
		}
		srv.Inject(telegram.Fault{Kind: telegram.Hang})
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if got := post(short, t, srv, "sendMessage", p{"chat_id": 7, "text": "never"}); !errors.Is(got.broken,
			context.DeadlineExceeded) {
			t.Errorf("a hanging call got %v", got.broken)
		}
		// The message still arrives if the client gives up while the server is slow.
		srv.Inject(telegram.Fault{Delay: 10 * time.Second})
		brief, cancel2 := context.WithTimeout(t.Context(), time.Second)
		defer cancel2()
		post(brief, t, srv, "sendMessage", p{"chat_id": 7, "text": "late"})
		if _, err := chat.AwaitText(t.Context(), "late"); err != nil {
			t.Error(err)
		}
	})
}

// TestFaultsOverASocket tests the faults over a real socket, where a dropped connection has many forms.
func TestFaultsOverASocket(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	b := realClient(t, srv)
	for _, kind := range []telegram.FaultKind{telegram.DropBefore, telegram.DropAfter, telegram.BadGateway,
		telegram.BadJSON} {
		srv.Inject(telegram.Fault{Method: "sendMessage", Kind: kind})
		_, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat.ID(), Text: string(kind)})
		if err == nil {
			t.Errorf("%s: no error", kind)
		}
		if strings.Contains(err.Error(), srv.Token()) {
			t.Errorf("%s: the token is in %v", kind, err)
		}
	}
	for text, want := range map[string]bool{"drop before": false, "drop after": true, "502": false,
		"malformed JSON": true} {
		if _, ok := chat.View().Find(text); ok != want {
			t.Errorf("%s: the message is there: %v", text, ok)
		}
	}
}

func TestDownloadsCanFail(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	m := chat.Person().SendDocument(chat, telegram.File{Name: "a.txt", Data: []byte("hello")})
	r := must(t, post(ctx, t, srv, "getFile", p{"file_id": m.Media.FileID}))
	path := strings.Split(strings.SplitAfter(string(r.Result), `"file_path":"`)[1], `"`)[0]
	get := func(token, path string) (int, string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL()+"/file/bot"+token+"/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(data), err
	}
	if status, body, err := get(srv.Token(), path); status != 200 || body != "hello" || err != nil {
		t.Errorf("a good download: %d %q %v", status, body, err)
	}
	if status, _, _ := get("1:wrong", path); status != 401 {
		t.Errorf("a wrong token: %d", status)
	}
	if status, _, _ := get(srv.Token(), "documents/file_99.txt"); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
	srv.Inject(telegram.Fault{Method: "file", Kind: telegram.BadGateway})
	if status, _, _ := get(srv.Token(), path); status != 502 {
		t.Errorf("a download through a broken gateway: %d", status)
	}
	for kind, want := range map[telegram.FaultKind]string{telegram.DropBefore: "", telegram.DropAfter: "he"} {
		// Go's client repeats a GET that got no answer, so the fault has to stay.
		drop := srv.Inject(telegram.Fault{Method: "file", Kind: kind, Times: telegram.Always})
		if _, body, err := get(srv.Token(), path); err == nil || body != want {
			t.Errorf("%s: got %q, %v", kind, body, err)
		}
		drop.Remove()
	}
	if calls := srv.Calls(telegram.Methods("file"), telegram.Succeeded); len(calls) < 2 ||
		calls[0].Fault != telegram.NoFault {
		t.Errorf("recorded %+v", calls)
	}
}
