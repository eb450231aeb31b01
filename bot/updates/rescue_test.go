package updates

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ductor/orchestrator"
)

// A message that an earlier process may have handled without a trace is not handled. Later messages, edits and presses
// are. The chat of a dropped message is notified, but not a stranger's.
func TestMessagesFromBeforeARescue(t *testing.T) {
	const listed = 7
	g := newGate(Allow{Users: orchestrator.Roster{listed: orchestrator.RoleUser}, Policy: func() Policy { return Policy{} }}, time.Now, slog.New(slog.DiscardHandler))
	g.lost = time.Unix(100, 5)
	var dropped []string
	g.dropped = func(m *wireMessage) { dropped = append(dropped, m.Text) }
	for i, c := range []struct {
		raw  string
		kept bool
	}{
		{`"message":{"message_id":1,"date":%d,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"x"}`, false},
		{`"edited_message":{"message_id":1,"date":%d,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"x"}`, true},
		{`"callback_query":{"id":"1","from":{"id":7},"message":{"message_id":1,"date":%d,"chat":{"id":7,"type":"private"}}}`, true},
	} {
		for date, kept := range map[int]bool{99: c.kept, 100: c.kept, 101: true} {
			u := g.strip(orchestrator.Update{ID: 5, Raw: fmt.Appendf(nil, `{"update_id":5,`+c.raw+`}`, date)})
			if u.ID != 5 || (u.Raw != nil) != kept {
				t.Errorf("%d of %d: kept %v", i, date, u.Raw != nil)
			}
		}
	}
	g.strip(orchestrator.Update{ID: 6, Raw: []byte(`{"update_id":6,"message":{
		"message_id":2,"date":99,"from":{"id":8},"chat":{"id":8,"type":"private"},"text":"of a stranger"}}`)})
	if !slices.Equal(dropped, []string{"x", "x"}) {
		t.Errorf("the chats of %q are notified", dropped)
	}
}
