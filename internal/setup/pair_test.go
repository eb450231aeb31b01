package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/tgapi"
	"ductor/internal/paircode"
)

// scripted is a fake Bot API: each poll returns the next answer; polls after the last one block.
type scripted struct {
	polls []any // results of polls: updates as JSON, an error, or the duration of a poll without updates
	calls []string
}

func (s *scripted) Call(ctx context.Context, method string, params, result any) error {
	raw, _ := json.Marshal(params)
	s.calls = append(s.calls, method+" "+string(raw))
	if method != "getUpdates" || result == nil {
		return nil
	}
	if len(s.polls) == 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollSeconds * time.Second):
			return nil
		}
	}
	next := s.polls[0]
	s.polls = s.polls[1:]
	switch next := next.(type) {
	case error:
		return next
	case time.Duration:
		time.Sleep(next)
		return nil
	}
	return json.Unmarshal([]byte(next.(string)), result)
}

// from returns the update of a private message.
func from(id, user int64, text string) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"text":%q,"chat":{"id":%d,"type":"private"},"from":{"id":%d,"first_name":"U%d"}}}`, id, text, user, user, user)
}

func TestPair(t *testing.T) {
	const code = "ABCDEFGHIJKL"
	conflict := &tgapi.AnswerError{Method: "getUpdates", Code: 409, Description: "Conflict: terminated by other getUpdates request"}
	tried := make([]string, paircode.MostWrong)
	for i := range tried {
		tried[i] = from(int64(i+1), 66, "/start ZZZZZZZZZZZ"+fmt.Sprint(i))
	}
	list := func(updates ...string) string { return "[" + strings.Join(updates, ",") + "]" }
	for _, c := range []struct {
		name  string
		polls []any
		want  int64
		err   error
	}{
		{"the code", []any{list(from(5, 77, code))}, 77, nil},
		{"the link, after others", []any{list(from(5, 66, "hello"), from(6, 67, "/start"), from(7, 66, "ZZZZZZZZZZZZ")), list(from(8, 77, "/start "+code))}, 77, nil},
		{"small letters", []any{list(from(5, 77, strings.ToLower(code)))}, 77, nil},
		{"in a group", []any{list(strings.Replace(from(5, 77, code), "private", "supergroup", 1))}, 0, ErrExpired},
		{"a part of it", []any{list(from(5, 77, code[:11]))}, 0, ErrExpired},
		{"no message", nil, 0, ErrExpired},
		{"guessed", []any{list(tried...), list(from(99, 77, code))}, 0, ErrAttempts},
		{"one guess less", []any{list(tried[1:]...), list(from(99, 77, code))}, 77, nil},
		{"small talk is no guess", []any{list(from(1, 66, "a b"), from(2, 66, strings.Repeat("how are you ", 9))), list(from(99, 77, code))}, 77, nil},
		{"another ductor", []any{conflict, conflict, conflict}, 0, ErrPolled},
		{"the end of another ductor", []any{conflict, conflict, list(), conflict, conflict, list(from(5, 77, code))}, 77, nil},
		{"a network that comes back", []any{errors.New("no route to host"), list(from(5, 77, code))}, 77, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &scripted{polls: c.polls}
				began := time.Now()
				who, err := Pair(t.Context(), api, code, func(string, ...any) {})
				if who.ID != c.want || !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
					t.Errorf("paired %+v: %v", who, err)
				}
				if errors.Is(err, ErrExpired) && time.Since(began) != paircode.Life {
					t.Errorf("it expired after %s", time.Since(began))
				}
				sent := strings.Join(api.calls, "\n")
				if n := strings.Count(sent, "sendMessage"); n != min(int(c.want), 1) || n > 0 && !strings.Contains(sent, fmt.Sprintf(`sendMessage {"chat_id":%d`, c.want)) {
					t.Errorf("it answers others than the owner:\n%s", sent)
				}
			})
		})
	}
}

func TestPairEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if _, err := Pair(ctx, &scripted{}, "ABCDEFGHIJKL", nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestTheConsoleNamesOtherMessages tests that the owner, who may have mistyped the code, reads who sent other messages
// and how many wrong codes are left, at most three times a minute.
func TestTheConsoleNamesOtherMessages(t *testing.T) {
	const code, wrong = "ABCDEFGHIJKL", "/start WRONGCODE123"
	named := func(name, text string) string {
		raw, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(from(1, 66, text), `"U66"`, string(raw), 1)
	}
	list := func(updates ...string) string { return "[" + strings.Join(updates, ",") + "]" }
	group := strings.Replace(from(1, 66, "hi"), "private", "group", 1)
	synctest.Test(t, func(t *testing.T) {
		api := &scripted{polls: []any{
			list(named("Zoe", "hello"), group, named("Zoe\n\x1b[2J\u202e", wrong), named("", wrong),
				named("Zoe", wrong)),
			time.Minute,
			list(named("Zoe", "/start"), named("Zoe", wrong), named("Zoe", wrong), named("Zoe", wrong)),
			time.Minute,
			list(named("Zoe", wrong), named("Zoe", wrong), named("Zoe", wrong), from(2, 77, code)),
		}}
		var said []string
		who, err := Pair(t.Context(), api, code, func(format string, args ...any) {
			said = append(said, fmt.Sprintf(format, args...))
		})
		want := []string{
			"A message came from Zoe, but not the code; 10 tries are left.",
			`A message came from Zoe \u001b[2J\u202e, but not the code; 9 tries are left.`,
			"A message came from user 66, but not the code; 8 tries are left.",
			"A message came from Zoe, but not the code; 7 tries are left.",
			"A message came from Zoe, but not the code; 6 tries are left.",
			"A message came from Zoe, but not the code; 5 tries are left.",
			"A message came from Zoe, but not the code; 3 tries are left.",
			"A message came from Zoe, but not the code; 2 tries are left.",
			"A message came from Zoe, but not the code; 1 try is left.",
		}
		if err != nil || who.ID != 77 || !slices.Equal(said, want) {
			t.Errorf("%v, %v; it prints\n%s", who, err, strings.Join(said, "\n"))
		}
	})
}
