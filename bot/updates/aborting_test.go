package updates

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

// commandsOnly implements the commands of a Handler, and records aborts.
type commandsOnly struct {
	Handler
	specs []CommandSpec
	stop  func()
}

func (h commandsOnly) Command(name string) (CommandSpec, bool) {
	i := slices.IndexFunc(h.specs, func(s CommandSpec) bool { return s.Named(name) })
	if i < 0 {
		return CommandSpec{Do: func(context.Context, Request) {}}, false
	}
	return h.specs[i], true
}

func (h commandsOnly) Stop(context.Context, Abort) { h.stop() }

// turnsFake implements the methods of Turns that aborts need.
type turnsFake struct {
	Turns
	await func(orchestrator.PendingAborts)
}

func (f turnsFake) AwaitAborts(a orchestrator.PendingAborts) { f.await(a) }
func (f turnsFake) Runs(orchestrator.ConversationID) bool    { return false }

// If a batch contains an abort, no queued turn of its conversation starts before the abort has ended.
func TestABatchWithAnAbortHoldsItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		record := func(what string) func() { return func() { order = append(order, what) } }
		awaited := make(chan orchestrator.PendingAborts, 2)
		started := CommandSpec{Name: "new", Do: func(context.Context, Request) { record("new")() }}
		r := NewRouter(RouterOptions{
			Allow: Allow{Users: orchestrator.Roster{listed: orchestrator.RoleUser}, Policy: always(Policy{})},
			Handler: commandsOnly{
				specs: []CommandSpec{started, {Name: "abort", Right: orchestrator.EndOwn}}, stop: record("abort"),
			},
			Turns: turnsFake{await: func(a orchestrator.PendingAborts) {
				record("await")()
				awaited <- a
			}},
			Log: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		defer r.Stop(t.Context())
		const format = `{"message":{"message_id":1,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"/%s"}}`
		var batch []orchestrator.Update
		for i, name := range []string{"new", "abort", "abort"} {
			batch = append(batch, orchestrator.Update{ID: int64(i + 1), Raw: fmt.Appendf(nil, format, name)})
		}
		r.Dispatch(t.Context(), batch)
		a := <-awaited
		<-a.Handled
		want := []string{"await", "new", "abort", "abort"}
		if !slices.Equal(order, want) || a.Conversation != (orchestrator.ConversationID{Chat: listed}) {
			t.Errorf("in %v: %q", a.Conversation, order)
		}
	})
}

type fields map[string]any

func captioned(text string) fields {
	return fields{"caption": text, "document": fields{"file_id": "f"}}
}

// say returns a message of a user, in Telegram's format.
func say(user, chat int64, text string, more fields) fields {
	kind := "private"
	if chat < 0 {
		kind = "supergroup"
	}
	m := fields{"from": fields{"id": user}, "chat": fields{"id": chat, "type": kind}, "text": text}
	maps.Copy(m, more)
	return m
}

// Aborts are found in stored updates at a start, and in updates that arrive.
func TestAbortsAreFound(t *testing.T) {
	const member, viewer, stranger, group = 8, 9, 66, -5
	allow := Allow{
		Users: orchestrator.Roster{listed: orchestrator.RoleUser, viewer: orchestrator.RoleViewer},
		Policy: always(Policy{
			AllowedGroups: []int64{group}, GroupMembers: AllMembers, AbortWords: []string{"stop"},
		}),
	}
	abort := CommandSpec{Name: "abort", Aliases: []string{"halt"}, Right: orchestrator.EndOwn}
	private, forwarded := fields{"id": listed, "type": "private"}, fields{"forward_origin": fields{"type": "user"}}
	mention := fields{"entities": []fields{{"type": "mention", "offset": 0, "length": len("@a_bot")}}}
	pressed := fields{"from": fields{"id": listed}, "message": say(listed, listed, "/abort", nil)}
	for name, c := range map[string]struct {
		update fields
		found  bool
	}{
		"command":                 {fields{"message": say(listed, listed, "/abort", nil)}, true},
		"alias":                   {fields{"message": say(listed, listed, "/Halt now", nil)}, true},
		"word":                    {fields{"message": say(listed, listed, "Stop!", nil)}, true},
		"edit":                    {fields{"edited_message": say(listed, listed, "stop", nil)}, true},
		"caption":                 {fields{"message": say(listed, listed, "", captioned("/abort"))}, true},
		"word in a caption":       {fields{"message": say(listed, listed, "", captioned("Stop"))}, true},
		"button of Telegram":      {fields{"stopped_message_generation": fields{"chat": private}}, true},
		"command of a member":     {fields{"message": say(member, group, "/abort@a_bot", nil)}, true},
		"command behind a name":   {fields{"message": say(listed, group, "@a_bot /abort", mention)}, true},
		"prompt":                  {fields{"message": say(listed, listed, "stop the server", nil)}, false},
		"other command":           {fields{"message": say(listed, listed, "/new", nil)}, false},
		"word in a group":         {fields{"message": say(listed, group, "stop", nil)}, false},
		"forwarded":               {fields{"message": say(listed, listed, "/abort", forwarded)}, false},
		"command of a viewer":     {fields{"message": say(viewer, viewer, "/abort", nil)}, false},
		"command of a stranger":   {fields{"message": say(stranger, stranger, "/abort", nil)}, false},
		"button below an /abort":  {fields{"callback_query": pressed}, false},
		"update without a sender": {fields{"message": fields{"text": "/abort"}}, false},
	} {
		router := &Router{
			me: Identity{Username: "a_bot"}, gate: newGate(allow, time.Now, slog.New(slog.DiscardHandler)),
			handler: commandsOnly{specs: []CommandSpec{abort}},
		}
		raw, err := json.Marshal(c.update)
		if err != nil {
			t.Fatal(err)
		}
		if a := router.arrive(orchestrator.Update{ID: 2, Raw: raw}); (a != nil && router.isAbort(a)) != c.found {
			t.Errorf("%s: an arrival is an abort: %v", name, !c.found)
		}
		journal := bottest.NewInbox()
		updates := []orchestrator.Update{{ID: 1, Raw: []byte("{")}, {ID: 2, Raw: raw}, {ID: 3, Raw: raw}}
		if _, err := journal.AppendUpdates(t.Context(), updates); err != nil {
			t.Fatal(err)
		}
		found, err := FindAborts(t.Context(), journal, allow, abort)
		if err != nil || (len(found) == 1) != c.found || len(found) > 1 {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
		journal.Handle([]int64{2, 3})
		if found, err := FindAborts(t.Context(), journal, allow, abort); err != nil || len(found) > 0 {
			t.Errorf("%s: found %v after it was handled, %v", name, found, err)
		}
	}
}
