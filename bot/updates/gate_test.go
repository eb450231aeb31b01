package updates

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

// listed is a user of the allowlist.
const listed = 7

func TestStrangersAreLoggedOnceAnHour(t *testing.T) {
	now := time.Unix(1000, 0)
	logs := &bottest.Log{}
	s := &refusals{log: slog.New(logs), now: func() time.Time { return now }, seen: make(map[refused]time.Time)}
	eve := &wireUser{ID: 66, FirstName: "Eve", Username: "eve"}
	chat := wireChat{ID: 66, Type: "private"}
	for range 5 {
		s.note(chat, eve, nil)
		now = now.Add(refusalPause)
	}
	if lines := logs.Lines(); len(lines) != 1 || !strings.Contains(lines[0], "user_id=66") || !strings.Contains(lines[0], "name=Eve") {
		t.Fatalf("want one line that names id and name, got %q", lines)
	}
	now = now.Add(refusedAgain)
	s.note(chat, eve, nil)
	now = now.Add(refusalPause)
	s.note(wireChat{ID: -5, Type: "group", Title: "Gang"}, eve, nil)
	if lines := logs.Lines(); len(lines) != 3 || !strings.Contains(lines[2], "chat_id=-5") {
		t.Fatalf("a new hour and another chat are news, got %q", lines)
	}
	for i := range refusalsKept * 2 {
		now = now.Add(refusalPause)
		s.note(wireChat{ID: int64(i), Type: "private"}, eve, nil)
	}
	if len(s.seen) > refusalsKept {
		t.Errorf("%d strangers are remembered", len(s.seen))
	}
}

func TestStrangersShareOneLineAMinute(t *testing.T) {
	now := time.Unix(1000, 0)
	logs := &bottest.Log{}
	s := &refusals{log: slog.New(logs), now: func() time.Time { return now }, seen: make(map[refused]time.Time)}
	for i := range 600 {
		s.note(wireChat{ID: int64(i), Type: "private"}, &wireUser{ID: int64(i)}, nil)
		now = now.Add(time.Second / 5)
	}
	if lines := logs.Lines(); len(lines) != 2 || !strings.Contains(lines[1], "updates_without_a_line=299") {
		t.Errorf("two minutes of strangers are these lines: %q", lines)
	}
}

// joinsFake accepts one code.
type joinsFake struct {
	code  string
	tried []string
	known orchestrator.Roster
}

func (j *joinsFake) RoleOf(user orchestrator.PersonID) orchestrator.UserRole {
	return j.known.RoleOf(user)
}

func (j *joinsFake) Join(_ context.Context, user orchestrator.PersonID, _, code string) bool {
	j.tried = append(j.tried, code)
	if code == j.code {
		j.known[user] = orchestrator.RoleUser
	}
	return code == j.code
}

// Of everything that strangers send, only a /start with a well-formed code is considered, if a user writes it in a
// private chat.
func TestOnlyACodeOfAStrangerIsLookedAt(t *testing.T) {
	const code, guessed = "ABCDEFGHIJ23", "ABCDEFGHIJ24"
	from := map[string]any{"id": 66, "first_name": "X"}
	private := map[string]any{"id": 66, "type": "private"}
	message := func(more map[string]any) map[string]any {
		m := map[string]any{"from": from, "chat": private, "text": "/start " + code}
		maps.Copy(m, more)
		return map[string]any{"message": m}
	}
	for name, c := range map[string]struct {
		update      map[string]any
		tries, kept bool
	}{
		"the code":            {message(nil), true, true},
		"a guess":             {message(map[string]any{"text": "/start " + guessed}), true, false},
		"the code alone":      {message(map[string]any{"text": code}), false, false},
		"another command":     {message(map[string]any{"text": "/help " + code}), false, false},
		"no code":             {message(map[string]any{"text": "/start"}), false, false},
		"by a bot":            {message(map[string]any{"from": map[string]any{"id": 66, "is_bot": true}}), false, false},
		"in a group":          {message(map[string]any{"chat": map[string]any{"id": -5, "type": "supergroup"}}), false, false},
		"by a channel":        {message(map[string]any{"sender_chat": map[string]any{"id": -6, "type": "channel"}}), false, false},
		"forwarded":           {message(map[string]any{"forward_origin": map[string]any{"type": "user", "sender_user": from}}), false, false},
		"in an edit":          {map[string]any{"edited_message": message(nil)["message"]}, false, false},
		"in another's chat":   {message(map[string]any{"chat": map[string]any{"id": 7, "type": "private"}}), false, false},
		"as a caption":        {message(map[string]any{"text": "", "caption": "/start " + code}), false, false},
		"by a listed user":    {message(map[string]any{"from": map[string]any{"id": listed}, "chat": map[string]any{"id": listed, "type": "private"}}), false, true},
		"in a pressed button": {map[string]any{"callback_query": map[string]any{"from": from, "data": code, "message": message(nil)["message"]}}, false, false},
	} {
		j := &joinsFake{code: code, known: orchestrator.Roster{listed: orchestrator.RoleUser}}
		g := newGate(Allow{Users: j, Joins: j, Policy: always(Policy{})}, time.Now, slog.New(slog.DiscardHandler))
		raw, err := json.Marshal(c.update)
		if err != nil {
			t.Fatal(err)
		}
		got := g.strip(orchestrator.Update{ID: 9, Raw: raw})
		if (len(j.tried) > 0) != c.tries || (got.Raw != nil) != c.kept {
			t.Errorf("%s: tried %q, %d bytes kept", name, j.tried, len(got.Raw))
		}
	}
}

func TestAStrangersUpdateIsStripped(t *testing.T) {
	g := newGate(Allow{Users: orchestrator.Roster{listed: orchestrator.RoleUser}, Policy: always(Policy{})}, time.Now, slog.New(slog.DiscardHandler))
	person := func(id int) map[string]any { return map[string]any{"id": id, "first_name": "X"} }
	private := func(id int) map[string]any { return map[string]any{"id": id, "type": "private"} }
	for name, c := range map[string]struct {
		update any
		kept   bool
	}{
		"a message of the owner":     {map[string]any{"message": map[string]any{"from": person(listed), "chat": private(listed), "text": "x"}}, true},
		"an edit of the owner":       {map[string]any{"edited_message": map[string]any{"from": person(listed), "chat": private(listed), "text": "x"}}, true},
		"a press of the owner":       {map[string]any{"callback_query": map[string]any{"from": person(listed), "message": map[string]any{"chat": private(listed)}}}, true},
		"a message of a stranger":    {map[string]any{"message": map[string]any{"from": person(66), "chat": private(66), "text": "x"}}, false},
		"an edit of a stranger":      {map[string]any{"edited_message": map[string]any{"from": person(66), "chat": private(66), "text": "x"}}, false},
		"a press of a stranger":      {map[string]any{"callback_query": map[string]any{"from": person(66), "message": map[string]any{"chat": private(listed)}}}, false},
		"a press below no message":   {map[string]any{"callback_query": map[string]any{"from": person(listed)}}, false},
		"a stop of the owner":        {map[string]any{"stopped_message_generation": map[string]any{"chat": private(listed), "draft_id": 3}}, true},
		"a stop of a stranger":       {map[string]any{"stopped_message_generation": map[string]any{"chat": private(66), "draft_id": 3}}, false},
		"a stop in a group":          {map[string]any{"stopped_message_generation": map[string]any{"chat": map[string]any{"id": listed, "type": "group"}}}, false},
		"a kind that we do not read": {map[string]any{"poll": map[string]any{}}, false},
		"no update":                  {[]int{1}, false},
	} {
		raw, err := json.Marshal(c.update)
		if err != nil {
			t.Fatal(err)
		}
		got := g.strip(orchestrator.Update{ID: 9, Raw: raw})
		if got.ID != 9 || (got.Raw != nil) != c.kept {
			t.Errorf("%s: %d bytes of update %d are kept", name, len(got.Raw), got.ID)
		}
	}
}

// The router handles an update as it is stored. It decodes the update again only if strip has changed it.
func TestAStrippedUpdateIsReadAsItIsStored(t *testing.T) {
	allow := Allow{Users: orchestrator.Roster{listed: orchestrator.RoleUser}, Policy: always(Policy{})}
	g := newGate(allow, time.Now, slog.New(slog.DiscardHandler))
	g.hide = func(_ orchestrator.ConversationID, _ orchestrator.PersonID, _ int64, text string) bool {
		return text == "secret"
	}
	message := func(text string) orchestrator.Update {
		const update = `{"update_id":9,"message":{"from":{"id":%d},"chat":{"id":%d,"type":"private"},"text":%q}}`
		return orchestrator.Update{ID: 9, Raw: fmt.Appendf(nil, update, listed, listed, text)}
	}
	hello, secret := g.strip(message("hello")), message("secret")
	decoded := g.stripped.wire.Message
	if w, ok := g.readStripped(hello); !ok || w.Message != decoded || w.Message.Text != "hello" {
		t.Errorf("a message is read as %+v", w.Message)
	}
	if w, ok := g.readStripped(hello); !ok || w.Message == decoded {
		t.Errorf("two readers share %+v", w.Message)
	}
	if w, ok := g.readStripped(g.strip(secret)); !ok || w.Message.Text != hiddenText || !w.Message.Secret {
		t.Errorf("a secret is read as %+v", w.Message)
	}
	g.strip(message("an earlier one"))
	if w, ok := g.readStripped(hello); !ok || w.Message.Text != "hello" {
		t.Errorf("a message is read as the one before it, %+v", w.Message)
	}
}

// A log-in token never gets into the journal, wherever it stands in an update.
func TestLogInTokensAreHidden(t *testing.T) {
	const token = "sk-ant-oat01-0123456789_abc-def"
	policy := always(Policy{AllowedGroups: []int64{-5}})
	g := newGate(Allow{Users: orchestrator.Roster{listed: orchestrator.RoleUser}, Policy: policy}, time.Now,
		slog.New(slog.DiscardHandler))
	g.hide = func(_ orchestrator.ConversationID, _ orchestrator.PersonID, _ int64, text string) bool {
		return text == token
	}
	const private, group = `"chat":{"id":7,"type":"private"}`, `"chat":{"id":-5,"type":"group"}`
	message := func(kind, chat, more string) string {
		return `{"update_id":9,"` + kind + `":{"message_id":3,"date":50,"from":{"id":7},` + chat + `,` + more + `}}`
	}
	for name, tc := range map[string]struct {
		raw    string
		secret bool
	}{
		"a message":     {message("message", private, `"text":"`+token+`"`), true},
		"in a group":    {message("message", group, `"text":"`+token+`"`), true},
		"an edit":       {message("edited_message", private, `"text":"`+token+`"`), false},
		"in a sentence": {message("message", private, `"text":"it is `+token+`, right?"`), false},
		"a caption":     {message("message", private, `"photo":[{"file_id":"a"}],"caption":"`+token+`"`), false},
		"the replied message": {message("message", private,
			`"text":"right?","reply_to_message":{"text":"`+token+`"}`), false},
		"a quote of the latter": {message("message", private, `"text":"right?","quote":{"text":"`+token+`"}`), false},
	} {
		got := g.strip(orchestrator.Update{ID: 9, Raw: []byte(tc.raw)})
		w, ok := g.read(got)
		if !ok || strings.Contains(string(got.Raw), token[:14]) {
			t.Errorf("%s: the journal gets %s", name, got.Raw)
		}
		if m := w.message(); m == nil || m.Secret != tc.secret {
			t.Errorf("%s: the journal gets %s", name, got.Raw)
		}
	}
}
