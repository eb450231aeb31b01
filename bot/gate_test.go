package bot

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ductor/orchestrator"
)

func TestStrangersAreLoggedOnceAnHour(t *testing.T) {
	now := time.Unix(1000, 0)
	logs := &logFake{}
	s := &strangers{log: slog.New(logs), now: func() time.Time { return now }, seen: make(map[stranger]time.Time)}
	eve := &wireUser{ID: 66, FirstName: "Eve", Username: "eve"}
	chat := wireChat{ID: 66, Type: "private"}
	for range 5 {
		s.note(chat, eve, nil)
		now = now.Add(strangerPause)
	}
	if lines := logs.Lines(); len(lines) != 1 || !strings.Contains(lines[0], "user_id=66") || !strings.Contains(lines[0], "name=Eve") {
		t.Fatalf("want one line that names id and name, got %q", lines)
	}
	now = now.Add(strangerQuiet)
	s.note(chat, eve, nil)
	now = now.Add(strangerPause)
	s.note(wireChat{ID: -5, Type: "group", Title: "Gang"}, eve, nil)
	if lines := logs.Lines(); len(lines) != 3 || !strings.Contains(lines[2], "chat_id=-5") {
		t.Fatalf("a new hour and another chat are news, got %q", lines)
	}
	for i := range strangersKept * 2 {
		now = now.Add(strangerPause)
		s.note(wireChat{ID: int64(i), Type: "private"}, eve, nil)
	}
	if len(s.seen) > strangersKept {
		t.Errorf("%d strangers are remembered", len(s.seen))
	}
}

func TestStrangersShareOneLineAMinute(t *testing.T) {
	now := time.Unix(1000, 0)
	logs := &logFake{}
	s := &strangers{log: slog.New(logs), now: func() time.Time { return now }, seen: make(map[stranger]time.Time)}
	for i := range 600 {
		s.note(wireChat{ID: int64(i), Type: "private"}, &wireUser{ID: int64(i)}, nil)
		now = now.Add(time.Second / 5)
	}
	if lines := logs.Lines(); len(lines) != 2 || !strings.Contains(lines[1], "updates_without_a_line=299") {
		t.Errorf("two minutes of strangers are these lines: %q", lines)
	}
}

func TestAStrangersUpdateIsStripped(t *testing.T) {
	rig := newInboundRig(t)
	defer rig.end()
	person := func(id int) map[string]any { return map[string]any{"id": id, "first_name": "X"} }
	private := func(id int) map[string]any { return map[string]any{"id": id, "type": "private"} }
	for name, c := range map[string]struct {
		update any
		kept   bool
	}{
		"a message of the owner":     {map[string]any{"message": rig.text("x")["message"]}, true},
		"an edit of the owner":       {map[string]any{"edited_message": rig.text("x")["message"]}, true},
		"a press of the owner":       {map[string]any{"callback_query": map[string]any{"from": person(owner), "message": map[string]any{"chat": private(owner)}}}, true},
		"a message of a stranger":    {map[string]any{"message": map[string]any{"from": person(66), "chat": private(66), "text": "x"}}, false},
		"an edit of a stranger":      {map[string]any{"edited_message": map[string]any{"from": person(66), "chat": private(66), "text": "x"}}, false},
		"a press of a stranger":      {map[string]any{"callback_query": map[string]any{"from": person(66), "message": map[string]any{"chat": private(owner)}}}, false},
		"a press below no message":   {map[string]any{"callback_query": map[string]any{"from": person(owner)}}, false},
		"a kind that we do not read": {map[string]any{"poll": map[string]any{}}, false},
		"no update":                  {[]int{1}, false},
	} {
		raw, err := json.Marshal(c.update)
		if err != nil {
			t.Fatal(err)
		}
		got := rig.gate.strip(orchestrator.Update{ID: 9, Raw: raw})
		if got.ID != 9 || (got.Raw != nil) != c.kept {
			t.Errorf("%s: %d bytes of update %d are kept", name, len(got.Raw), got.ID)
		}
	}
}
